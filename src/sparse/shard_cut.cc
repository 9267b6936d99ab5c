#include "sparse/shard_cut.h"

#include <utility>

#include "base/error.h"
#include "sparse/table_shard.h"

namespace anabranch::sparse {

void ShardCut::append_row(int64_t key, uint32_t seen, const float* record, int64_t floats, std::string* to) {
  const auto append = [to](const void* data, size_t bytes) { to->append(static_cast<const char*>(data), bytes); };
  append(&key, sizeof(key));
  append(&seen, sizeof(seen));
  append(record, static_cast<size_t>(floats) * sizeof(float));
}

TableShard::~TableShard() = default;

// ---- changes

void TableShard::record_changes() {
  changes_ = std::make_unique<ShardChanges>(used_records_, changes_ ? changes_->keys().size() : 0);
}

void TableShard::count_changes(uint64_t* rows, uint64_t* gone) const {
  *rows += changes_ ? changes_->listed() : static_cast<uint64_t>(stats_.rows);
  *gone += changes_ ? changes_->gone().size() : 0;
}

uint32_t TableShard::row_of(int64_t key) const {
  Position at;
  return index_.find(key, &at) ? index_[at.bucket].row[at.slot] : 0;
}

void TableShard::take_back(const ShardChanges& changes) {
  if (!changes_) return;
  changes_->take_back(changes, [this](int64_t key) { return row_of(key); });
}

void TableShard::take_changed(std::vector<int64_t>* keys) {
  if (!changes_) return;
  for (const int64_t key : changes_->keys()) {
    if (const uint32_t row = row_of(key); row && changes_->has(row)) keys->push_back(key);
  }
  record_changes();
}

bool TableShard::remove(int64_t key) {
  Position at;
  if (!index_.find(key, &at)) return false;
  erase(at);
  return true;
}

// ---- the cut

uint64_t TableShard::begin_cut(CutKind kind, int64_t rows_a_slice) {
  AB_CHECK(!cut_, Unavailable, "two saves of one table run at the same time");
  AB_CHECK(changes_ || kind != CutKind::kChanges, NotFound, "the changes of this table were not recorded");
  int bits = 0;
  while (bits < kMostSliceBits && stats_.rows >> bits > rows_a_slice) ++bits;
  std::unique_ptr<ShardChanges> changes;
  if (kind != CutKind::kRows) {
    changes =
        std::exchange(changes_, std::make_unique<ShardChanges>(used_records_, changes_ ? changes_->keys().size() : 0));
  }
  cut_ = std::make_unique<ShardCut>(used_records_, options_.floats(), kind != CutKind::kChanges, bits, rows_a_slice,
                                    std::move(changes));
  return ++cuts_;
}

std::unique_ptr<ShardChanges> TableShard::end_cut(uint64_t cut) {
  if (!is_cut(cut)) return nullptr;
  auto changes = cut_->take_changes();
  cut_ = nullptr;
  return changes;
}

bool TableShard::append_gone(std::vector<int64_t>* keys) const {
  if (!cut_ || !cut_->changes()) return false;
  const auto& gone = cut_->changes()->gone();
  keys->insert(keys->end(), gone.begin(), gone.end());
  return true;
}

CutRows TableShard::take_kept(uint64_t cut) { return is_cut(cut) ? cut_->take_kept() : CutRows(); }

void TableShard::keep_for_cut(int64_t key, uint32_t seen, uint32_t row) {
  if (cut_->owes(TableIndex::hash_within(key), row)) cut_->keep(key, seen, row, record(row));
}

// Prefetches all lines of the slice before the first one is read.
bool TableShard::cut_slice(uint64_t cut, std::vector<Owed>* scratch, CutRows* rows) {
  AB_CHECK(is_cut(cut), Unavailable, "a table was loaded again while it was saved");
  if (cut_->over()) return false;
  scratch->clear();
  const auto owe = [&](int64_t key, uint32_t seen, uint32_t row) {
    if (!cut_->owes(TableIndex::hash_within(key), row)) return;
    scratch->push_back({key, seen, row});
    __builtin_prefetch(record(row));
  };
  if (cut_->all()) {
    each_entry_of(cut_->slice(), cut_->bits(), owe);
  } else {
    cut_->each_key([&](int64_t key) { index_.prefetch(key); });
    cut_->each_key([&](int64_t key) {
      Position at;
      if (index_.find(key, &at)) owe(key, index_[at.bucket].seen[at.slot], index_[at.bucket].row[at.slot]);
    });
  }
  for (const Owed& e : *scratch) {
    if (cut_->owes(TableIndex::hash_within(e.key), e.row)) cut_->write(e.key, e.seen, e.row, record(e.row), rows);
  }
  cut_->end_slice();
  return true;
}

}  // namespace anabranch::sparse
