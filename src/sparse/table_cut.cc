#include <mutex>

#include "sparse/growable_table.h"

namespace anabranch::sparse {
namespace {

// Lets threads that wait for a shard go first.
class LastInLine {
 public:
  explicit LastInLine(SpinLock& lock) : lock_(lock) { lock_.lock_after_others(); }
  ~LastInLine() { lock_.unlock(); }
  LastInLine(const LastInLine&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace

GrowableTable::Cut::Cut(std::shared_ptr<GrowableTable> table, int64_t slice_bytes) : table_(std::move(table)) {
  const auto row_bytes = static_cast<int64_t>(table_->header().row_bytes());
  size_t begun = 0;
  try {
    for (Part& p : table_->parts_) {
      const std::lock_guard held(p.lock);
      p.shard->begin_cut(slice_bytes / row_bytes + 1);
      ++begun;
    }
  } catch (...) {
    for (size_t s = 0; s < begun; ++s) {
      const std::lock_guard held(table_->parts_[s].lock);
      table_->parts_[s].shard->end_cut();
    }
    throw;
  }
}

GrowableTable::Cut::~Cut() {
  for (Part& p : table_->parts_) {
    const std::lock_guard held(p.lock);
    p.shard->end_cut();
  }
}

// Each slice includes the rows of all shards that have changed before they were written, so that few accumulate.
bool GrowableTable::Cut::next(std::string* rows) {
  if (shard_ == table_->parts_.size()) return false;
  for (size_t s = shard_; s < table_->parts_.size(); ++s) {
    Part& p = table_->parts_[s];
    std::string kept;
    {
      const LastInLine held(p.lock);
      kept = p.shard->take_kept();
    }
    rows->append(kept);
  }
  Part& p = table_->parts_[shard_];
  const LastInLine held(p.lock);
  if (p.shard->cut_slice(&scratch_, rows)) return true;
  rows->append(p.shard->take_kept());
  p.shard->end_cut();
  ++shard_;
  return true;
}

}  // namespace anabranch::sparse
