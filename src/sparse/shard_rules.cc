// Admission of keys to a shard, and eviction of rows.
#include <algorithm>

#include "sparse/table_shard.h"

namespace anabranch::sparse {
namespace {

constexpr int kCandidates = 8;  // rows of which the oldest is evicted
constexpr int kTired = 64;      // if this number of rows belong to the running step, nearly all do

}  // namespace

uint64_t TableShard::draw() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

bool TableShard::admitted(int64_t key) {
  if (options_.admit_probability < 1 && unit(draw()) >= options_.admit_probability) return false;
  if (options_.admit_count <= 1) return true;
  // Two counters per key, possibly shared with others: the smaller one is an upper estimate.
  const uint64_t h = hash_id(key) << KeyOrder::kBits;
  uint8_t& a = counters_[in_range(h, counters_.size())];
  uint8_t& b = counters_[in_range(scramble(h), counters_.size())];
  const uint8_t times = std::min(a, b);
  if (times + 1 >= options_.admit_count) return true;
  a = std::max<uint8_t>(a, times + 1);
  b = std::max<uint8_t>(b, times + 1);
  return false;
}

// Evicts the oldest of a few rows from a random position on. Rows of the running step stay.
bool TableShard::evict_one() {
  if (stats_.rows == 0) return false;
  Position p{in_range(draw(), index_.buckets()), 0}, oldest{};
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
  Position at;
  if (!index_.find(key, &at)) return insert(key, seen, true);
  TableIndex::Bucket& b = index_[at.bucket];
  if (cut_) keep_for_cut(key, b.seen[at.slot], b.row[at.slot]);
  b.seen[at.slot] = seen;
  return record(b.row[at.slot]);
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

}  // namespace anabranch::sparse
