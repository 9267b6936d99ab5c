#include "sparse/table_shard.h"

#include <algorithm>

#include "core/tensor.h"
#include "hwy/highway.h"

namespace anabranch::sparse {
namespace {

constexpr int64_t kLineFloats = 16;
constexpr int64_t kFreeBytes = sizeof(uint32_t);  // of a row that may be on the list of free ones
constexpr int64_t kChunkBytes = 256 << 10;        // of records
constexpr uint64_t kFirstBuckets = 16;
constexpr uint64_t kFirstOfLimited = 4096;  // buckets that a table with a limit begins with
constexpr int64_t kAhead = 32;              // keys between asking for a line and needing it
constexpr int kCandidates = 8;              // rows of which the oldest is evicted
constexpr int kTired = 64;                  // when as many are of the running step, so are nearly all
constexpr size_t kCounters = 1 << 16;

uint64_t scramble(uint64_t x) {  // splitmix64, Steele et al., OOPSLA 2014
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

float unit(uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1p-24f; }

namespace hn = hwy::HWY_NAMESPACE;

// Faster than a call for the few lines of a row.
void copy_floats(const float* from, int64_t n, float* to) {
  const hn::FixedTag<float, 4> d;
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) hn::StoreU(hn::LoadU(d, from + j), d, to + j);
  for (; j < n; ++j) to[j] = from[j];
}

void prefetch_floats(const float* p, int64_t n) {
  for (int64_t j = 0; j < n; j += kLineFloats) __builtin_prefetch(p + j);
}

}  // namespace

float* RecordMemory::take(size_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  const std::lock_guard lock(mutex_);
  if (used_ + bytes > kBlockBytes) {
    blocks_.push_back(allocate_buffer(std::max(kBlockBytes, bytes)));
    used_ = 0;
  }
  char* piece = static_cast<char*>(blocks_.back().get()) + used_;
  used_ += bytes;
  return reinterpret_cast<float*>(piece);
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
  const auto wanted =
      static_cast<int64_t>(static_cast<double>(left) / (static_cast<double>(record_bytes + kFreeBytes) + slot_bytes));
  max_rows_ = std::min(max_rows_, wanted / rows_a_chunk * rows_a_chunk);
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

// Nobody waits on the list while the index grows: it is full because all records are taken.
void TableShard::reserve_free() {
  if (options_.max_bytes) free_.reserve(static_cast<size_t>(std::min(max_rows_, index_.rows() + 1)));
}

// With a limit it doubles up to an eighth of its last size and then takes that: both have room where the records that
// are still to come will be. From a file, whose limit may be a lie, it grows with the rows.
void TableShard::grow_index(bool from_file) {
  index_.grow(options_.max_bytes && !from_file);
  hand_ = 0;
  reserve_free();
}

void TableShard::erase(Place gap) {
  free_.push_back(index_[gap.bucket].row[gap.slot]);
  --stats_.rows;
  index_.erase(gap);
}

// ---- records

uint32_t TableShard::new_record() {
  if (!free_.empty()) {
    const uint32_t row = free_.back();
    free_.pop_back();
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

// ---- rules of entry and exit

uint64_t TableShard::draw() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

bool TableShard::admitted(int64_t key) {
  if (options_.admit_probability < 1 && unit(draw()) >= options_.admit_probability) return false;
  if (options_.admit_count <= 1) return true;
  // Two counters a key, which it may share with others: the smaller one is an estimate from above.
  const uint64_t h = hash_id(key) << KeyOrder::kBits;
  uint8_t& a = counters_[in_range(h, counters_.size())];
  uint8_t& b = counters_[in_range(scramble(h), counters_.size())];
  const uint8_t times = std::min(a, b);
  if (times + 1 >= options_.admit_count) return true;
  a = std::max<uint8_t>(a, times + 1);
  b = std::max<uint8_t>(b, times + 1);
  return false;
}

// The oldest of a few rows from a random place on goes. Rows of the running step stay.
bool TableShard::evict_one() {
  if (stats_.rows == 0) return false;
  Place p{in_range(draw(), index_.buckets()), 0}, oldest{};
  uint32_t age = 0;
  int seen = 0;
  for (uint64_t i = 0; i < index_.buckets() * TableIndex::kSlots && (seen < kCandidates || age == 0);
       ++i, p = index_.next(p)) {
    const TableIndex::Bucket& b = index_[p.bucket];
    if (!b.row[p.slot]) continue;
    if (++seen > kTired) break;
    if (age_of(b.seen[p.slot]) <= age) continue;
    age = age_of(b.seen[p.slot]);
    oldest = p;
  }
  if (age == 0) return false;
  erase(oldest);
  ++stats_.evicted;
  return true;
}

bool TableShard::make_room() { return stats_.rows < max_rows_ || (options_.evict && evict_one()); }

float* TableShard::add(int64_t key) {
  if (!admitted(key)) {
    ++stats_.waiting;
    return nullptr;
  }
  if (!make_room()) {
    ++stats_.refused;
    return nullptr;
  }
  float* made = insert(key, clock_);
  fill(key, made);
  ++stats_.created;
  return made;
}

float* TableShard::restore(int64_t key, uint32_t seen) {
  if (stats_.rows >= max_rows_) return nullptr;
  seen &= ~kMark;
  Place at;
  if (!index_.find(key, &at)) return insert(key, seen, true);
  index_[at.bucket].seen[at.slot] = seen;
  return record(index_[at.bucket].row[at.slot]);
}

void TableShard::tick() {
  clock_ = (clock_ + 1) & ~kMark;
  if (options_.expire_after == 0) return;
  const uint64_t steps = index_.buckets() / static_cast<uint64_t>(options_.expire_after) + 1;
  for (uint64_t i = 0; i < steps; ++i, hand_ = hand_ + 1 >= index_.buckets() ? 0 : hand_ + 1) {
    for (int s = 0; s < TableIndex::kSlots; ++s) {
      while (index_[hand_].row[s] && age_of(index_[hand_].seen[s]) > options_.expire_after) {
        erase({hand_, s});
        ++stats_.expired;
      }
    }
  }
}

// ---- work on many keys: the line of the index is asked for first, then that of the record, then it is read

float* TableShard::look_up(int64_t key, bool train) {
  Place at;
  if (index_.find(key, &at)) [[likely]] {
    ++stats_.hits;
    TableIndex::Bucket& bucket = index_[at.bucket];
    if (train && bucket.seen[at.slot] != clock_) bucket.seen[at.slot] = clock_;
    return record(bucket.row[at.slot]);
  }
  ++stats_.misses;
  return train ? add(key) : nullptr;
}

// Requests go out one by one: more than a few at once would be dropped.
void TableShard::pull(const KeyAt* keys, int64_t count, const Pull& how, float* out) {
  float* rows[kAhead];
  const int64_t width = options_.width;
  for (int64_t i = 0; i < count + 2 * kAhead; ++i) {
    if (i < count) index_.prefetch(keys[i].key);
    if (const int64_t done = i - 2 * kAhead; done >= 0) {
      const float* row = rows[done % kAhead];
      float* to = out + keys[done].place * width;
      if (row) [[likely]] {
        copy_floats(row, width, to);
      } else {
        std::fill(to, to + width, 0.0f);
      }
    }
    if (const int64_t known = i - kAhead; known >= 0 && known < count) {
      const int64_t key = keys[known].key;
      float* row = how.padding && key == *how.padding ? nullptr : look_up(key, how.train);
      if (row) prefetch_floats(row, width);
      rows[known % kAhead] = row;
    }
  }
}

// Gradients of one row find each other in the index: while they are collected, the row's age gives way to the number of
// its group.
int64_t TableShard::collect(const KeyAt* keys, int64_t count, RecordGroup* groups, int32_t* next) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) index_.prefetch(keys[i + kAhead].key);
    const int32_t place = keys[i].place;
    next[place] = -1;
    Place at;
    if (!index_.find(keys[i].key, &at)) continue;
    uint32_t* seen = &index_[at.bucket].seen[at.slot];
    if (*seen & kMark) {
      RecordGroup& g = groups[*seen & ~kMark];
      next[g.last] = place;
      g.last = place;
      continue;
    }
    groups[found] = {record(index_[at.bucket].row[at.slot]), seen, *seen, place, place};
    *seen = kMark | static_cast<uint32_t>(found++);
  }
  return found;
}

// Before gradients are collected: rows that are new may move the index.
void TableShard::make_rows(const KeyAt* keys, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) index_.prefetch(keys[i + kAhead].key);
    if (Place at; !index_.find(keys[i].key, &at)) add(keys[i].key);
  }
}

void TableShard::update(const KeyAt* keys, int64_t count, RecordUpdate how, RecordGroup* groups, int32_t* next) {
  if (how.makes_rows) make_rows(keys, count);
  for (int64_t i = 0; i < std::min(count, kAhead); ++i) index_.prefetch(keys[i].key);
  how.count = collect(keys, count, groups, next);
  how.groups = groups;
  how.next = next;
  how.width = options_.width;
  update_records(how);
  for (int64_t i = 0; i < how.count; ++i) *groups[i].seen_at = groups[i].seen;
  tick();
}

void TableShard::each_piece(const std::function<void(const void*, int64_t)>& fn) const {
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
