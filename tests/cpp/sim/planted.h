// What may be planted in a simulated cluster.
#pragma once

namespace anabranch::ps::sim {

// Defects that the histories have to find.
enum class Planted {
  kNone,
  kJournalIsNotWritten,
  kSyncDoesNothing,
  kFolderSyncDoesNothing,
  kRequestsLoseTheirNumber,     // nobody can tell that one has come before
  kAcknowledgedBeforeItCame,    // the network answers for the server
  kOneVariableIsForgotten,      // of an update
  kStateIsNotLoaded,            // numbers of requests are, values are not
  kStateIsOfTheSnapshotBefore,  // values are saved late, numbers of requests are not
  kIncarnationStays,            // a server that comes again has the old one's
  kUpdatesComeTwice,            // each hundredth
  kLossIsNotCounted,
  kRowsOfOneIteration,  // a row that changes after the cut gets into the snapshot as it is then
  kRowsAreCountedOff,   // slices begin where as many rows are behind them as are written: others come between
  kChangedRowsAreLeft,  // a row that changes before its turn is in no slice
  kTheCutComesLate,     // with the first slice
  kDefects,
  // Of GEO and of sums by name, beside some of those.
  kChangedRowsAreNotTold = kDefects,
  kSumsForgetOne,
  // Of queues of files, beside some of those.
  kBroadcastAndNotWritten,
  kBeatsDoNotCome,
  kTheDeadKeepTheirFiles,
};

}  // namespace anabranch::ps::sim
