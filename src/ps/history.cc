#include "ps/history.h"

#include <algorithm>
#include <charconv>

namespace anabranch::ps {

History::History(const HistoryOptions& options) : options_(options), strongest_(options.durability) {
  for (const auto& [table, level] : options.tables) strongest_ = std::max(strongest_, level);
  AB_CHECK(options.durability == Durability::kNone || !options.folder.empty(), InvalidArgument,
           "a server that keeps its state needs a folder for it");
  AB_CHECK(options.snapshot_every >= 1, InvalidArgument, "snapshot_every must be at least 1, got {}",
           options.snapshot_every);
  if (options.durability == Durability::kNone) return;
  options.disk->make_folder(options.folder);
  lock_ = options.disk->lock(options.folder, options.holder);
  if (!lock_) {
    options.tell(fmt::format("the file system of {} has no locks: make sure that no other server uses this folder",
                             options.folder));
  }
}

std::string History::path(const char* kind, uint64_t number) const {
  return fmt::format("{}/{}-{:08}", options_.folder, kind, number);
}

// Ascending.
std::vector<uint64_t> History::numbers(const std::string& kind) const {
  std::vector<uint64_t> out;
  for (const std::string& name : options_.disk->list(options_.folder)) {
    if (!name.starts_with(kind + "-")) continue;
    uint64_t number = 0;
    const char* begin = name.data() + kind.size() + 1;
    const char* end = name.data() + name.size();
    if (std::from_chars(begin, end, number).ptr == end) out.push_back(number);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// It is scanned before any of it is used: its last record has the number of records.
bool History::is_whole(const std::string& file) const {
  uint64_t records = 0, said = 0;
  read_records(*options_.disk->open(file), [&](const std::vector<MessageRef>& r) {
    ++records;
    const Header& h = r[0]->header();
    said = h.verb == Verb::kComplete ? h.round : 0;
  });
  return records > 0 && said == records;
}

bool History::read(const std::function<void(std::vector<MessageRef>)>& snapshot,
                   const std::function<void(std::vector<MessageRef>)>& journal) {
  const std::vector<uint64_t> found = numbers("snapshot");
  for (auto it = found.rbegin(); it != found.rend(); ++it) {
    const std::string file = path("snapshot", *it) + "/state";
    if (!options_.disk->exists(file)) continue;
    if (!is_whole(file)) {
      options_.tell(fmt::format("the snapshot {} is damaged, the one before it is taken", file));
      continue;
    }
    read_records(*options_.disk->open(file), [&](std::vector<MessageRef> r) {
      if (r[0]->header().verb != Verb::kComplete) snapshot(std::move(r));
    });
    last_ = *it;
    newest_ = std::max(*it, found.back());
    for (const uint64_t j : numbers("journal")) {
      newest_ = std::max(newest_, j);
      if (j < last_ || !keeps_journal()) continue;
      read_records(*options_.disk->open(path("journal", j)), journal);
    }
    return true;
  }
  AB_CHECK(found.empty(), InvalidArgument, "no snapshot in {} is complete", options_.folder);
  for (const uint64_t j : numbers("journal")) {  // a server that is killed in its first start leaves an empty one
    read_records(*options_.disk->open(path("journal", j)), [&](const std::vector<MessageRef>&) {
      AB_THROW(InvalidArgument,
               "{} has updates, but no snapshot is there: restore the snapshots, or remove the folder to start again",
               path("journal", j));
    });
  }
  return false;
}

void History::open_journal(uint64_t number) {
  if (!keeps_journal()) return;
  auto opened = std::make_shared<RecordWriter>(options_.disk->create(path("journal", number)));
  if (strongest_ == Durability::kFlushed) options_.disk->sync_folder(options_.folder);
  const std::lock_guard lock(journal_mutex_);
  if (journal_ && strongest_ == Durability::kFlushed && !broken_) {
    journal_->sync();
    flushed_ = appended_.load();
  }
  journal_ = std::move(opened);
  broken_ = false;
}

void History::append(std::span<const MessageRef> messages, bool flushed) {
  if (messages[0]->header().verb != Verb::kHello) ++since_;  // a restart alone does not justify a snapshot
  if (!keeps_journal()) return;
  AB_CHECK(!broken_, Unavailable,
           "the journal in {} cannot be written: requests are rejected until a snapshot succeeds", options_.folder);
  try {
    journal_->write(messages);
  } catch (...) {
    broken_ = true;  // nothing after the damaged record would be read
    since_ = options_.snapshot_every;
    throw;
  }
  const uint64_t position = appended_.fetch_add(1) + 1;
  if (flushed) needed_ = position;
}

void History::commit(uint64_t position) {
  if (strongest_ != Durability::kFlushed || flushed_ >= position) return;
  const std::lock_guard one(committing_);
  if (flushed_ >= position) return;  // by another thread
  std::shared_ptr<RecordWriter> journal;
  uint64_t all = 0;
  {
    const std::lock_guard lock(journal_mutex_);
    if (flushed_ >= position) return;
    AB_CHECK(!broken_, Unavailable, "the journal in {} cannot be flushed", options_.folder);
    journal = journal_;
    all = appended_;
  }
  try {
    journal->sync();
  } catch (...) {
    const std::lock_guard lock(journal_mutex_);
    broken_ = true;  // the system may have dropped unwritten data: the same file is not tried again
    throw;
  }
  if (flushed_ < all) flushed_ = all;
}

uint64_t History::begin_snapshot() {
  if (!broken_) since_ = 0;  // a failed snapshot is not repeated at once
  const uint64_t number = newest_ + 1;
  open_journal(number);
  newest_ = number;
  since_ = 0;
  return number;
}

std::unique_ptr<SnapshotFile> History::open_snapshot(uint64_t number) {
  const std::string folder = path("new", number);
  options_.disk->make_folder(folder);
  return std::make_unique<SnapshotFile>(*options_.disk, folder, number);
}

void History::close_snapshot(SnapshotFile& file) {
  Disk& disk = *options_.disk;
  file.end();
  disk.rename(file.folder_, path("snapshot", file.number_));
  disk.sync_folder(options_.folder);
  last_ = file.number_;
  remove_old();
}

// The last two snapshots stay, with the journals since the older one. Files that cannot be removed do no harm.
void History::remove_old() {
  const std::vector<uint64_t> kept = numbers("snapshot");
  const uint64_t first = kept.size() < 2 ? kept.front() : kept[kept.size() - 2];
  for (const char* kind : {"snapshot", "journal", "new"}) {
    for (const uint64_t n : numbers(kind)) {
      if (n >= first && (kind != std::string_view("new") || n > last_)) continue;
      try {
        options_.disk->remove(path(kind, n));
      } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
      }
    }
  }
}

}  // namespace anabranch::ps
