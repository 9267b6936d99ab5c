// What a server keeps on disk, so that another one can go on where it was killed: snapshots of its state, and a journal
// of what it has acknowledged since.
//
//   FOLDER/snapshot-00000007/state   a snapshot: written as new-00000007, flushed, renamed. The last two are kept.
//   FOLDER/journal-00000007          what was acknowledged after it, until snapshot 8 began
//
// A journal begins at the moment at which a snapshot is taken, before it is on disk: a snapshot that is not there yet,
// or is damaged, is made up for by the one before it and both journals. Not thread-safe, but for commit().
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "ps/records.h"

namespace anabranch::ps {

enum class Durability {
  kNone,      // nothing is kept
  kSnapshot,  // L0: what was acknowledged after the last snapshot is lost with the process, and counted
  kJournal,   // L1: what was acknowledged survives the process
  kFlushed,   // L2: and the machine
};

struct HistoryOptions {
  Durability durability = Durability::kNone;
  std::string folder;
  int64_t snapshot_every = 1000;  // records
  Disk* disk = &real_disk();
  // Of losses and failures that stop nothing.
  std::function<void(const std::string& what)> tell = [](const std::string& what) {
    fmt::print(stderr, "anabranch: {}\n", what);
  };
  std::map<std::string, Durability> tables = {};  // those for which it is another one; not kNone
};

// A snapshot that is being written. One that nobody closes is found by nobody.
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
  uint64_t records_ = 0, flushed_ = 0;  // flushed: bytes
};

class History {
 public:
  explicit History(const HistoryOptions& options);

  bool keeps_journal() const { return strongest_ >= Durability::kJournal; }
  // The last snapshot that is whole, then what was acknowledged after it. False when there is none; InvalidArgument
  // when there are some and none is whole.
  bool read(const std::function<void(std::vector<MessageRef>)>& snapshot,
            const std::function<void(std::vector<MessageRef>)>& journal);

  // Appends what is about to be done. Unavailable or ResourceExhausted: it is not on disk, and must not be done.
  // `flushed`: whether it has to survive the machine, where anything has.
  void append(std::span<const MessageRef> messages, bool flushed = true);
  bool snapshot_is_due() const { return since_ >= options_.snapshot_every; }

  // A snapshot is of now: a new journal begins.
  uint64_t begin_snapshot();
  // It is written record by record, while append() and commit() go on, and then named. Unavailable or
  // ResourceExhausted when that failed, and then the one before stays the last.
  std::unique_ptr<SnapshotFile> open_snapshot(uint64_t number);
  void close_snapshot(SnapshotFile& file);
  uint64_t last_snapshot() const { return last_; }

  // What must be on disk before now() is answered.
  uint64_t position() const { return wanted_; }
  // Any thread, several together: returns when all up to a position is on disk.
  void commit(uint64_t position);

 private:
  std::string path(const char* kind, uint64_t number) const;
  std::vector<uint64_t> numbers(const std::string& kind) const;
  void open_journal(uint64_t number);
  void remove_old();
  bool is_whole(const std::string& file) const;

  const HistoryOptions options_;
  Durability strongest_;  // of all tables
  std::shared_ptr<RecordWriter> journal_;
  std::atomic<bool> broken_{false};  // the journal has refused something: what comes behind it would not be found
  std::atomic<int64_t> since_{0};    // records since the last snapshot began
  uint64_t last_ = 0, newest_ = 0;   // snapshots: on disk, begun
  std::atomic<uint64_t> appended_{0}, flushed_{0};
  std::atomic<uint64_t> wanted_{0};  // the last one that has to be flushed
  std::mutex committing_, journal_mutex_;
};

}  // namespace anabranch::ps
