#include "sparse/shard_cut.h"

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

void TableShard::begin_cut(int64_t rows_a_slice) {
  AB_CHECK(!cut_, Unavailable, "two saves of one table run at the same time");
  int bits = 0;
  while (bits < kMostSliceBits && stats_.rows >> bits > rows_a_slice) ++bits;
  cut_ = std::make_unique<ShardCut>(used_records_, options_.width * (1 + options_.moments), bits);
}

void TableShard::end_cut() { cut_ = nullptr; }

std::string TableShard::take_kept() { return cut_ ? cut_->take_kept() : std::string(); }

void TableShard::keep_for_cut(int64_t key, uint32_t seen, uint32_t row) {
  if (cut_->owes(TableIndex::hash_within(key), row)) cut_->keep(key, seen, row, record(row));
}

// Prefetches all lines of the slice before the first one is read.
bool TableShard::cut_slice(std::vector<Entry>* scratch, std::string* rows) {
  AB_CHECK(cut_, Unavailable, "a table was loaded again while it was saved");
  if (cut_->over()) return false;
  scratch->clear();
  const int64_t floats = options_.width * (1 + options_.moments);
  each_entry_of(cut_->slice(), cut_->bits(), [&](int64_t key, uint32_t seen, uint32_t row) {
    if (!cut_->owes(TableIndex::hash_within(key), row)) return;
    scratch->push_back({key, seen, record(row)});
    __builtin_prefetch(scratch->back().record);
  });
  for (const Entry& e : *scratch) ShardCut::append_row(e.key, e.seen, e.record, floats, rows);
  cut_->end_slice();
  return true;
}

}  // namespace anabranch::sparse
