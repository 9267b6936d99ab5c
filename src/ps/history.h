// A server's state on disk, so that another one can resume after a crash: snapshots of its state, and a journal of
// everything it acknowledged since.
//
//   FOLDER/lock                      held while the server runs; its text is the holder
//   FOLDER/snapshot-00000007/state   a snapshot: written as new-00000007, flushed, renamed. The last two are kept.
//   FOLDER/journal-00000007          updates acknowledged after it, until snapshot 8 started
//
// A journal starts at the moment at which a snapshot is taken, before it is on disk: a missing or damaged snapshot is
// replaced by the previous one and both journals. Not thread-safe, except for commit().
#pragma once
#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "ps/records.h"

namespace anabranch::ps {

enum class Durability {
  kNone,      // nothing is stored
  kSnapshot,  // L0: updates acknowledged after the last snapshot are lost with the process, and counted
  kJournal,   // L1: acknowledged updates survive the process
  kFlushed,   // L2: and a power failure
};

struct HistoryOptions {
  Durability durability = Durability::kNone;
  std::string folder;
  int64_t snapshot_every = 1000;  // records
  Disk* disk = &real_disk();
  // Reports losses and failures that stop nothing.
  std::function<void(const std::string& what)> tell = [](const std::string& what) {
    fmt::print(stderr, "anabranch: {}\n", what);
  };
  std::map<std::string, Durability> tables = {};  // tables with another level; not kNone
  std::string holder = "another server";          // shown to others that open the same folder
};

// A snapshot that is being written. It is invisible until it is closed.
class SnapshotFile {
 public:
  SnapshotFile(Disk& disk, const std::string& folder, uint64_t number);
  void put(const Message& record);

 private:
  friend class History;
  void end();

  Disk& disk_;
  const std::string folder_;
  const uint64_t number_;
  RecordWriter out_;
  uint64_t records_ = 0, flushed_ = 0;  // flushed: in bytes
};

class History {
 public:
  // Unavailable: another server holds the folder.
  explicit History(const HistoryOptions& options);

  bool keeps_journal() const { return strongest_ >= Durability::kJournal; }
  // The last complete snapshot, then the updates acknowledged after it. False if there is none; InvalidArgument if
  // there are some and none is complete.
  bool read(const std::function<void(std::vector<MessageRef>)>& snapshot,
            const std::function<void(std::vector<MessageRef>)>& journal);

  // Appends an operation before it is done. Unavailable or ResourceExhausted: it is not on disk, and must not be done.
  // `flushed`: whether it must survive a power failure.
  void append(std::span<const MessageRef> messages, bool flushed = true);
  bool snapshot_is_due() const { return since_ >= options_.snapshot_every; }

  // A snapshot has the current state: a new journal starts.
  uint64_t begin_snapshot();
  // It is written record by record, while append() and commit() go on, and then renamed. Unavailable or
  // ResourceExhausted if that failed; the previous one then stays the last.
  std::unique_ptr<SnapshotFile> open_snapshot(uint64_t number);
  void close_snapshot(SnapshotFile& file);
  uint64_t last_snapshot() const { return last_; }

  // The position that must be on disk before an operation is acknowledged.
  uint64_t position() const { return needed_; }
  // Any thread, concurrently: returns when everything up to a position is on disk.
  void commit(uint64_t position);

 private:
  std::string path(const char* kind, uint64_t number) const;
  std::vector<uint64_t> numbers(const std::string& kind) const;
  void open_journal(uint64_t number);
  void remove_old();
  bool is_whole(const std::string& file) const;

  const HistoryOptions options_;
  std::unique_ptr<DiskLock> lock_;
  Durability strongest_;  // of all tables
  std::shared_ptr<RecordWriter> journal_;
  std::atomic<bool> broken_{false};  // the journal has refused a record: later ones would not be found
  std::atomic<int64_t> since_{0};    // records since the last snapshot started
  uint64_t last_ = 0, newest_ = 0;   // snapshots: on disk, started
  std::atomic<uint64_t> appended_{0}, flushed_{0};
  std::atomic<uint64_t> needed_{0};  // the last one that must be flushed
  std::mutex committing_, journal_mutex_;
};

}  // namespace anabranch::ps
