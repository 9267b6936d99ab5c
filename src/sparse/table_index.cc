#include "sparse/table_index.h"

#include <algorithm>
#include <cstring>

#include "core/tensor.h"

namespace anabranch::sparse {
namespace {

constexpr uint64_t kSmall = 64;  // up to this number of buckets it doubles; then it grows by an eighth

}  // namespace

void TableIndex::begin(uint64_t buckets, uint64_t most) {
  most_ = most;
  set_buckets(buckets);
}

void TableIndex::read_from(const Bucket* index, uint64_t buckets) {
  memory_.reset();
  index_ = const_cast<Bucket*>(index);
  buckets_ = most_ = buckets;
}

void TableIndex::set_buckets(uint64_t buckets) {
  const size_t bytes = static_cast<size_t>(buckets) * sizeof(Bucket);
  memory_ = allocate_buffer(bytes);
  std::memset(memory_.get(), 0, bytes);
  index_ = static_cast<Bucket*>(memory_.get());
  buckets_ = buckets;
}

int64_t TableIndex::rows() const { return static_cast<int64_t>(kFull * static_cast<double>(buckets_ * kSlots)); }

uint64_t TableIndex::larger(bool doubles) const {
  const uint64_t larger = doubles || buckets_ < kSmall ? buckets_ * 2 : buckets_ + buckets_ / 8;
  return doubles && larger > most_ / 8 ? most_ : std::min(larger, most_);
}

void TableIndex::grow(bool doubles) { move_to(larger(doubles)); }

void TableIndex::reserve(int64_t rows) {
  const auto needed = static_cast<uint64_t>(static_cast<double>(rows) / (kSlots * kFull)) + 1;
  if (needed > buckets_) move_to(std::min(needed, most_));
}

void TableIndex::move_to(uint64_t buckets) {
  const auto old_memory = memory_;
  const Bucket* old = index_;
  const uint64_t count = buckets_;
  set_buckets(buckets);
  for (uint64_t b = 0; b < count; ++b) {
    for (int s = 0; s < kSlots; ++s) {
      if (old[b].row[s]) insert(old[b].key[s], old[b].row[s], old[b].seen[s]);
    }
  }
}

void TableIndex::insert(uint64_t key, uint32_t row, uint32_t seen) {
  Position p{first_slot(static_cast<int64_t>(key)), 0};
  while (index_[p.bucket].row[p.slot]) p = next(p);
  index_[p.bucket].key[p.slot] = key;
  index_[p.bucket].row[p.slot] = row;
  index_[p.bucket].seen[p.slot] = seen;
}

// Entries after the gap move up, unless that would put one before its first slot.
void TableIndex::erase(Position gap) {
  const auto number = [](Position p) { return p.bucket * kSlots + static_cast<uint64_t>(p.slot); };
  for (Position p = next(gap); index_[p.bucket].row[p.slot]; p = next(p)) {
    const Bucket& from = index_[p.bucket];
    const uint64_t slots = buckets_ * kSlots;
    const uint64_t start = first_slot(static_cast<int64_t>(from.key[p.slot])) * kSlots;
    const uint64_t to_gap = (number(gap) + slots - start) % slots, to_here = (number(p) + slots - start) % slots;
    if (to_gap > to_here) continue;
    Bucket& to = index_[gap.bucket];
    to.key[gap.slot] = from.key[p.slot];
    to.row[gap.slot] = from.row[p.slot];
    to.seen[gap.slot] = from.seen[p.slot];
    gap = p;
  }
  index_[gap.bucket].row[gap.slot] = 0;
}

}  // namespace anabranch::sparse
