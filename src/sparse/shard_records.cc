// Storage of a shard's rows: records, and the index that finds them.
#include <algorithm>

#include "core/tensor.h"
#include "sparse/shard_cut.h"
#include "sparse/table_shard.h"

namespace anabranch::sparse {
namespace {

constexpr int64_t kLineFloats = 16;
constexpr int64_t kFreeBytes = sizeof(uint32_t);  // of a row that may be on the free list
constexpr int64_t kChunkBytes = 256 << 10;        // of records
constexpr uint64_t kFirstBuckets = 16;
constexpr uint64_t kFirstOfLimited = 4096;  // initial number of buckets of a table with a limit
constexpr size_t kCounters = 1 << 16;

}  // namespace

float* RecordMemory::take(size_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  const std::lock_guard lock(mutex_);
  if (used_ + bytes > kBlockBytes) {
    blocks_.push_back(allocate_buffer(std::max(kBlockBytes, bytes)));
    used_ = 0;
  }
  char* chunk = static_cast<char*>(blocks_.back().get()) + used_;
  used_ += bytes;
  return reinterpret_cast<float*>(chunk);
}

int64_t record_stride(const TableOptions& options) {
  const int64_t floats = options.width * (1 + options.moments);
  const int64_t lines = (floats + kLineFloats - 1) / kLineFloats * kLineFloats;
  return (lines - floats) * 8 <= lines ? lines : floats;
}

TableShard::TableShard(const TableOptions& options, int64_t budget_bytes, uint64_t number, RecordMemory* memory)
    : options_(options),
      stride_(record_stride(options)),
      memory_(memory),
      random_(scramble(options.seed + number) | 1) {
  const int64_t record_bytes = stride_ * static_cast<int64_t>(sizeof(float));
  const int64_t chunk_bytes = budget_bytes ? std::min(kChunkBytes, budget_bytes / 16) : kChunkBytes;
  while ((record_bytes << (chunk_bits_ + 1)) <= chunk_bytes) ++chunk_bits_;
  chunk_mask_ = (uint32_t{1} << chunk_bits_) - 1;
  if (options.admit_count > 1)
    counters_.resize(budget_bytes ? std::min<size_t>(kCounters, budget_bytes / 32) : kCounters);
  max_rows_ = UINT32_MAX - 1;
  if (!budget_bytes) {
    begin_index(kFirstBuckets, UINT64_MAX);
    return;
  }
  const auto slot_bytes = static_cast<double>(sizeof(TableIndex::Bucket)) / (TableIndex::kSlots * TableIndex::kFull);
  const int64_t left = budget_bytes - static_cast<int64_t>(counters_.size() + sizeof(TableIndex::Bucket));
  const int64_t rows_a_chunk = int64_t{1} << chunk_bits_;
  const auto needed =
      static_cast<int64_t>(static_cast<double>(left) / (static_cast<double>(record_bytes + kFreeBytes) + slot_bytes));
  max_rows_ = std::min(max_rows_, needed / rows_a_chunk * rows_a_chunk);
  AB_CHECK(max_rows_ > 0, InvalidArgument, "max_bytes leaves no room for rows of {} bytes", record_bytes);
  const auto full = static_cast<double>(max_rows_) / (TableIndex::kSlots * TableIndex::kFull);
  const uint64_t most = static_cast<uint64_t>(full) + 1;
  begin_index(std::min(most, kFirstOfLimited), most);
}

// ---- the index

void TableShard::begin_index(uint64_t buckets, uint64_t most) {
  index_.begin(buckets, most);
  reserve_free();
}

// No caller depends on the list while the index grows: it is full because all records are in use.
void TableShard::reserve_free() {
  if (options_.max_bytes) free_.reserve(static_cast<size_t>(std::min(max_rows_, index_.rows() + 1)));
}

// With a limit the index doubles up to an eighth of its final size and then jumps to it: both have room where future
// records will be. When it is loaded from a file, whose limit may be wrong, it grows with the rows.
void TableShard::grow_index(bool from_file) {
  index_.grow(options_.max_bytes && !from_file);
  hand_ = 0;
  reserve_free();
}

void TableShard::reserve(int64_t rows) {
  index_.reserve(std::min(rows, max_rows_));
  hand_ = 0;
  reserve_free();
}

void TableShard::erase(Position gap) {
  const TableIndex::Bucket& b = index_[gap.bucket];
  if (cut_) keep_for_cut(static_cast<int64_t>(b.key[gap.slot]), b.seen[gap.slot], b.row[gap.slot]);
  free_.push_back(index_[gap.bucket].row[gap.slot]);
  --stats_.rows;
  index_.erase(gap);
}

// ---- records

uint32_t TableShard::new_record() {
  if (!free_.empty()) {
    const uint32_t row = free_.back();
    free_.pop_back();
    if (cut_) cut_->is_new(row);
    return row;
  }
  if (used_records_ >> chunk_bits_ == chunks_.size()) {
    const size_t bytes = static_cast<size_t>(stride_) * sizeof(float) << chunk_bits_;
    if (!memory_) chunk_memory_.push_back(allocate_buffer(bytes));
    chunks_.push_back(memory_ ? memory_->take(bytes) : static_cast<float*>(chunk_memory_.back().get()));
  }
  return ++used_records_;
}

void TableShard::fill(int64_t key, float* record) const {
  uint64_t state = scramble(options_.seed ^ hash_id(key));
  for (int64_t j = 0; j < options_.width; ++j) {
    state += 0x9e3779b97f4a7c15u;
    record[j] = options_.low + (options_.high - options_.low) * unit(scramble(state));
  }
  std::fill(record + options_.width, record + options_.width * (1 + options_.moments), options_.moment_start);
}

float* TableShard::insert(int64_t key, uint32_t seen, bool from_file) {
  if (index_.may_grow() && stats_.rows + 1 > index_.rows()) grow_index(from_file);
  const uint32_t row = new_record();
  index_.insert(static_cast<uint64_t>(key), row, seen);
  ++stats_.rows;
  return record(row);
}

void TableShard::each_chunk(const std::function<void(const void*, int64_t)>& fn) const {
  fn(index_.data(), index_.bytes());
  for (const float* chunk : chunks_) fn(chunk, stride_ * static_cast<int64_t>(sizeof(float)) << chunk_bits_);
}

TableStats TableShard::stats() const {
  TableStats s = stats_;
  s.bytes = index_.bytes() + static_cast<int64_t>(counters_.size() + free_.capacity() * sizeof(uint32_t)) +
            static_cast<int64_t>(chunks_.size()) * (stride_ * static_cast<int64_t>(sizeof(float)) << chunk_bits_);
  return s;
}

}  // namespace anabranch::sparse
