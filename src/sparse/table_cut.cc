#include <algorithm>
#include <mutex>

#include "sparse/growable_table.h"

namespace anabranch::sparse {
namespace {

constexpr int64_t kHeldBytes = 4 << 10;  // of rows, for which a lookup or an update waits: about 10 microseconds

// Lets threads that wait for a shard go first.
class LastInLine {
 public:
  explicit LastInLine(SpinLock& lock) : lock_(lock) { lock_.lock_after_others(); }
  ~LastInLine() { lock_.unlock(); }
  LastInLine(const LastInLine&) = delete;

 private:
  SpinLock& lock_;
};

void append(const CutRows& rows, CutRows* to) {
  to->all.append(rows.all);
  to->changed.append(rows.changed);
}

}  // namespace

GrowableTable::Cut::Cut(std::shared_ptr<GrowableTable> table, int64_t slice_bytes, CutKind kind)
    : table_(std::move(table)), slice_bytes_(slice_bytes), header_(table_->header()), since_(table_->since_) {
  table_->check_not_image();
  const auto row_bytes = static_cast<int64_t>(header_.row_bytes());
  size_t begun = 0;
  try {
    for (Part& p : table_->parts_) {
      const std::lock_guard held(p.lock);
      cuts_[begun] = p.shard->begin_cut(kind, std::min(slice_bytes, kHeldBytes) / row_bytes + 1);
      has_changes_ &= p.shard->append_gone(&gone_);
      ++begun;
    }
  } catch (...) {
    for (size_t s = 0; s < begun; ++s) {
      Part& p = table_->parts_[s];
      const std::lock_guard held(p.lock);
      if (const auto changes = p.shard->end_cut(cuts_[s])) p.shard->take_back(*changes);
    }
    throw;
  }
  std::sort(gone_.begin(), gone_.end());
  gone_.erase(std::unique(gone_.begin(), gone_.end()), gone_.end());
}

void GrowableTable::Cut::abandon() {
  for (size_t s = 0; s < table_->parts_.size(); ++s) {
    Part& p = table_->parts_[s];
    const std::lock_guard held(p.lock);
    if (const auto changes = p.shard->end_cut(cuts_[s])) p.shard->take_back(*changes);
    if (const auto changes = std::move(written_[s])) p.shard->take_back(*changes);
  }
  shard_ = table_->parts_.size();
}

void GrowableTable::Cut::end(uint64_t link) {
  for (auto& changes : written_) changes.reset();
  table_->since_.compare_exchange_strong(since_, link);  // it may have been loaded meanwhile
}

// Each slice includes the rows of all shards that have changed before they were written, so that few accumulate.
bool GrowableTable::Cut::next(CutRows* rows) {
  if (shard_ == table_->parts_.size()) return false;
  for (size_t s = shard_; s < table_->parts_.size(); ++s) {
    Part& p = table_->parts_[s];
    CutRows kept;
    {
      const LastInLine held(p.lock);
      kept = p.shard->take_kept(cuts_[s]);
    }
    append(kept, rows);
  }
  const size_t full = rows->bytes() + static_cast<size_t>(slice_bytes_), shard = shard_;
  while (shard_ == shard && rows->bytes() < full) cut_some(rows);
  return true;
}

void GrowableTable::Cut::cut_some(CutRows* rows) {
  Part& p = table_->parts_[shard_];
  const LastInLine held(p.lock);
  if (p.shard->cut_slice(cuts_[shard_], &scratch_, rows)) return;
  append(p.shard->take_kept(cuts_[shard_]), rows);
  written_[shard_] = p.shard->end_cut(cuts_[shard_]);
  ++shard_;
}

bool GrowableTable::Cut::next(std::string* rows) {
  CutRows some;
  const bool more = next(&some);
  rows->append(some.all);
  return more;
}

}  // namespace anabranch::sparse
