// Storage of a shard's rows: records, and the index that finds them.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/tensor.h"
#include "sparse/shard_cut.h"
#include "sparse/table_shard.h"

namespace anabranch::sparse {
namespace {

constexpr int64_t kLineFloats = 16;
constexpr int64_t kFreeBytes = sizeof(uint32_t);  // of a row that may be on the free list
constexpr int64_t kChunkBytes = 256 << 10;        // of records
constexpr int64_t kFewBytes = 16 << 10;           // of few records
constexpr int64_t kSpare = 16;                    // one row in 16 more is accepted from a file
constexpr uint64_t kFirstBuckets = 16;
constexpr uint64_t kFirstOfLimited = 4096;  // initial number of buckets of a table with a limit
constexpr int64_t kCounters = 1 << 18;      // of keys without a row, in a table without a limit

#define AB_NORMAL_FN inline
#include "base/normal-inl.h"
#undef AB_NORMAL_FN

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
  const int64_t floats = options.floats();
  const int64_t lines = (floats + kLineFloats - 1) / kLineFloats * kLineFloats;
  return (lines - floats) * 8 <= lines ? lines : floats;
}

TableShard::TableShard(const TableOptions& options, RecordMemory* memory)
    : options_(options), stride_(record_stride(options)), memory_(memory) {
  const bool nests = kClasses % options.servers == 0;
  const int64_t classes = nests ? kClasses / options.servers : 1, all = nests ? kClasses : options.servers;
  rows_of_.resize(static_cast<size_t>(classes));
  // One part in 64 is for blocks of records that are not full.
  const int64_t budget = (options.max_bytes - options.max_bytes / 64) / (KeyOrder::kShards * all);
  const int64_t counters = std::min(kCounters / kClasses, options.max_bytes ? budget / 32 : INT64_MAX);
  if (options.admit_count > 1) key_counts_.assign(rows_of_.size(), KeyCounts(static_cast<size_t>(counters)));
  const int64_t record_bytes = stride_ * static_cast<int64_t>(sizeof(float));
  const int64_t chunk_bytes = options.max_bytes ? std::min(kChunkBytes, budget * classes / 64)
                              : options.few     ? kFewBytes
                                                : kChunkBytes;
  while ((record_bytes << (chunk_bits_ + 1)) <= chunk_bytes) ++chunk_bits_;
  chunk_mask_ = (uint32_t{1} << chunk_bits_) - 1;
  max_rows_ = max_of_class_ = UINT32_MAX - 1;
  if (!options.max_bytes) {
    begin_index(kFirstBuckets, UINT64_MAX);
    return;
  }
  // And one in 32 for a chunk that is not full.
  const auto slot_bytes = static_cast<double>(sizeof(TableIndex::Bucket)) / (TableIndex::kSlots * TableIndex::kFull);
  const int64_t left = budget - budget / 32 - (options.admit_count > 1 ? counters : 0) -
                       static_cast<int64_t>(sizeof(TableIndex::Bucket)) / kClasses;
  max_of_class_ =
      static_cast<int64_t>(static_cast<double>(left) / (static_cast<double>(record_bytes + kFreeBytes) + slot_bytes));
  AB_CHECK(max_of_class_ > 0, InvalidArgument, "max_bytes leaves no room for rows of {} bytes", record_bytes);
  const int64_t rows = max_of_class_ * classes;
  max_rows_ = std::min(max_rows_, rows + rows / kSpare);
  const uint64_t most = static_cast<uint64_t>(static_cast<double>(rows) / (TableIndex::kSlots * TableIndex::kFull)) + 1;
  begin_index(std::min(most, kFirstOfLimited), most);
}

TableShard::TableShard(const TableOptions& options, const Image& image) : TableShard(options, nullptr) {
  is_image_ = true;
  index_.read_from(image.index, image.buckets);
  stats_.rows = used_records_ = image.rows;
  const int64_t chunk = stride_ << chunk_bits_;
  for (int64_t row = 0; row < image.rows; row += int64_t{1} << chunk_bits_) {
    chunks_.push_back(const_cast<float*>(image.records) + (row >> chunk_bits_) * chunk);
  }
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
  reserve_free();
}

void TableShard::reserve(int64_t rows) {
  index_.reserve(std::min(rows, max_rows_));
  reserve_free();
}

void TableShard::erase(Position gap) {
  const TableIndex::Bucket& b = index_[gap.bucket];
  if (cut_) keep_for_cut(static_cast<int64_t>(b.key[gap.slot]), b.seen[gap.slot], b.row[gap.slot]);
  if (changes_) changes_->erase(static_cast<int64_t>(b.key[gap.slot]), b.row[gap.slot]);
  free_.push_back(b.row[gap.slot]);
  --stats_.rows;
  --rows_of_[static_cast<size_t>(class_of(static_cast<int64_t>(b.key[gap.slot])))];
  index_.erase(gap);
}

// ---- records

uint32_t TableShard::new_record() {
  if (!free_.empty()) {
    const uint32_t row = free_.back();
    free_.pop_back();
    if (cut_) cut_->is_done(row);
    return row;
  }
  if (used_records_ >> chunk_bits_ == chunks_.size()) {
    const size_t bytes = static_cast<size_t>(stride_) * sizeof(float) << chunk_bits_;
    if (!memory_) chunk_memory_.push_back(allocate_buffer(bytes));
    chunks_.push_back(memory_ ? memory_->take(bytes) : static_cast<float*>(chunk_memory_.back().get()));
  }
  return ++used_records_;
}

void TableShard::start(int64_t key, float* row) const {
  uint64_t state = scramble(options_.seed ^ hash_id(key));
  const auto each = [&](auto&& number) {
    for (int64_t j = 0; j < options_.width; ++j) {
      state += 0x9e3779b97f4a7c15u;
      row[j] = number(scramble(state));
    }
  };
  const double mean = options_.low, deviation = options_.high, tail = two_deviations_tail();
  switch (options_.start) {
    case Start::kUniform:
      each([&](uint64_t bits) { return options_.low + (options_.high - options_.low) * unit(bits); });
      break;
    case Start::kNormal:
      each([&](uint64_t bits) { return static_cast<float>(mean + deviation * normal_quantile(inner_unit(bits))); });
      break;
    case Start::kTruncatedNormal:
      each([&](uint64_t b) { return static_cast<float>(mean + deviation * truncated_normal(inner_unit(b), tail)); });
  }
  std::fill(row, row + options_.added(), 0.0f);
}

void TableShard::fill(int64_t key, float* record) const {
  start(key, record);
  float* const moments = record + options_.width;
  std::fill(moments, moments + options_.state(), options_.moment_start);
  std::fill(record + options_.floats() - options_.counts(), record + options_.floats(), 0.0f);
}

float* TableShard::insert(int64_t key, uint32_t seen, bool from_file) {
  if (index_.may_grow() && stats_.rows + 1 > index_.rows()) grow_index(from_file);
  const uint32_t row = new_record();
  index_.insert(static_cast<uint64_t>(key), row, seen);
  ++stats_.rows;
  if (changes_) {
    changes_->create(key, row);
    changes_->trim([this](int64_t k) { return row_of(k); });
  }
  ++rows_of_[static_cast<size_t>(class_of(key))];
  return record(row);
}

int64_t TableShard::record_bytes() const {
  const auto record = stride_ * static_cast<int64_t>(sizeof(float));
  return is_image_ ? used_records_ * record : static_cast<int64_t>(chunks_.size()) * (record << chunk_bits_);
}

void TableShard::each_chunk(const std::function<void(const void*, int64_t)>& fn) const {
  fn(index_.data(), index_.bytes());
  if (is_image_ && !chunks_.empty()) return fn(chunks_.front(), record_bytes());
  for (const float* chunk : chunks_) fn(chunk, stride_ * static_cast<int64_t>(sizeof(float)) << chunk_bits_);
}

TableStats TableShard::stats() const {
  TableStats s = stats_;
  s.bytes = index_.bytes() + static_cast<int64_t>(free_.capacity() * sizeof(uint32_t)) +
            (changes_ ? changes_->bytes() : 0) + record_bytes();
  for (const KeyCounts& counts : key_counts_) s.bytes += counts.bytes();
  return s;
}

}  // namespace anabranch::sparse
