// Defects that may be planted in a simulated cluster.
#pragma once

namespace anabranch::ps::sim {

// Defects that the histories have to find.
enum class Planted {
  kNone,
  kJournalIsNotWritten,
  kSyncDoesNothing,
  kFolderSyncDoesNothing,
  kRequestsLoseTheirNumber,     // a repeated one cannot be recognized
  kAcknowledgedBeforeItCame,    // the network answers for the server
  kOneVariableIsForgotten,      // of an update
  kStateIsNotLoaded,            // numbers of requests are, values are not
  kStateIsOfTheSnapshotBefore,  // values are saved late, numbers of requests are not
  kIncarnationStays,            // a server that comes again has the old one's
  kUpdatesComeTwice,            // each hundredth
  kLossIsNotCounted,
  kRowsAreNotOfTheCut,     // a row that changes after the cut gets into the snapshot as it is then
  kRowsAreCountedOff,      // slices start at the number of rows written: others come between
  kChangedRowsAreLeft,     // a row that changes before it is written is in no slice
  kTheCutComesLate,        // with the first slice
  kReplicasShareMessages,  // the exchange of one sends what the others have pushed
  kDefects,
  // Of GEO and of sums by name, with some of those.
  kChangedRowsAreNotTold = kDefects,
  kRemovedRowsAreNotTold,
  kSumsForgetOne,
  // Of queues of files, with some of those.
  kLeasedAndNotWritten,
  kBeatsDoNotCome,
  kTheDeadKeepTheirFiles,
};

}  // namespace anabranch::ps::sim
