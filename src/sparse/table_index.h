// Maps keys to records and to the time they were last seen: linear probing, slot after slot from the first one of the
// key's bucket. A bucket is a cache line, and buckets are in the order of the keys' hashes.
#pragma once
#include <bit>
#include <cstdint>
#include <memory>

#include "sparse/hash.h"
#include "sparse/key_order.h"

namespace anabranch::sparse {

class TableIndex {
 public:
  static constexpr int kSlots = 4;
  static constexpr double kFull = 0.79;  // maximum share of used slots
  struct alignas(64) Bucket {            // one cache line
    uint64_t key[kSlots];
    uint32_t row[kSlots];  // number of the record, from 1 on; 0: the slot is empty
    uint32_t seen[kSlots];
  };
  struct Position {
    uint64_t bucket;
    int slot;
  };

  // The hash of a key without the bits that choose the shard.
  static uint64_t hash_within(int64_t key) { return hash_id(key) << KeyOrder::kBits; }

  // Empty, with room for `buckets`; it grows up to `most` of them.
  void begin(uint64_t buckets, uint64_t most);
  // Reads the buckets of another object, which must not be changed through this one.
  void read_from(const Bucket* index, uint64_t buckets);
  bool may_grow() const { return buckets_ < most_; }
  // doubles: up to an eighth of its final size, and then to it; else by an eighth, once it is not small.
  void grow(bool doubles);
  // Reserves room for `rows` in any order of hashes: ascending hashes fill consecutive slots, which is slow in an index
  // that grows with them.
  void reserve(int64_t rows);
  int64_t rows() const;  // the number of rows it has room for

  uint64_t buckets() const { return buckets_; }
  Bucket& operator[](uint64_t bucket) { return index_[bucket]; }
  const Bucket& operator[](uint64_t bucket) const { return index_[bucket]; }
  const void* data() const { return index_; }
  int64_t bytes() const { return static_cast<int64_t>(buckets_ * sizeof(Bucket)); }

  Position next(Position p) const {
    if (++p.slot < kSlots) return p;
    return {next(p.bucket), 0};
  }
  void prefetch(int64_t key) const { __builtin_prefetch(&index_[first_slot(key)]); }
  // The slot of a key, false if it has none. All slots of a bucket are compared at once, because the right one cannot
  // be predicted.
  bool find(int64_t key, Position* at) const {
    for (uint64_t b = first_slot(key);; b = next(b)) {
      const unsigned taken = kAllSlots & ~equal_slots(index_[b].row, uint32_t{0});
      const unsigned hit = equal_slots(index_[b].key, static_cast<uint64_t>(key)) & taken;
      if (hit) [[likely]] {
        *at = {b, std::countr_zero(hit)};
        return true;
      }
      if (taken != kAllSlots) return false;
    }
  }
  // Inserts a key that is absent; there must be room.
  void insert(uint64_t key, uint32_t row, uint32_t seen);
  void erase(Position at);

  // fn(key, last seen, row) for all keys.
  template <class Fn> void each(Fn&& fn) const {
    for (uint64_t b = 0; b < buckets_; ++b) {
      for (int s = 0; s < kSlots; ++s) {
        if (index_[b].row[s]) fn(static_cast<int64_t>(index_[b].key[s]), index_[b].seen[s], index_[b].row[s]);
      }
    }
  }
  // The same for keys whose hash, without the bits that choose the shard, is from `low` to `high`: they are adjacent.
  template <class Fn> void each_between(uint64_t low, uint64_t high, Fn&& fn) const {
    const uint64_t first = in_range(low, buckets_), last = in_range(high, buckets_);
    for (uint64_t k = 0, b = first; k < buckets_; ++k, b = next(b)) {
      bool gap = false;
      for (int s = 0; s < kSlots; ++s) {
        gap |= index_[b].row[s] == 0;
        const uint64_t hash = hash_within(static_cast<int64_t>(index_[b].key[s]));
        if (!index_[b].row[s] || hash < low || hash > high) continue;
        fn(static_cast<int64_t>(index_[b].key[s]), index_[b].seen[s], index_[b].row[s]);
      }
      if (gap && first + k >= last) return;  // no entry was pushed on from there
    }
  }
  // fn(position, hash, after) for entries from the bucket of a hash on, until enough() or for all of them. enough() is
  // called where those with `after` are the first ones that follow the hash in the cyclic order of hashes. Returns
  // whether it came to the end.
  template <class Fn, class Enough> bool each_after(uint64_t hash, Fn&& fn, Enough&& enough) const {
    const uint64_t first = in_range(hash, buckets_);
    for (uint64_t k = 0, b = first; k < buckets_; ++k, b = next(b)) {
      bool gap = false;
      for (int s = 0; s < kSlots; ++s) {
        gap |= index_[b].row[s] == 0;
        if (!index_[b].row[s]) continue;
        const uint64_t h = hash_within(static_cast<int64_t>(index_[b].key[s])), of = in_range(h, buckets_);
        const uint64_t away = of >= first ? of - first : of + buckets_ - first;
        fn(Position{b, s}, h, away <= k && (away > 0 || h >= hash));
      }
      if (gap && enough()) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned kAllSlots = 15;

  // Bits of the slots of a bucket that hold a key, and of those in use: sums of comparisons, without branches.
  template <class T> static unsigned equal_slots(const T* slots, T sought) {
    const auto bit = [&](int s) { return static_cast<unsigned>(slots[s] == sought) << s; };
    return bit(0) | bit(1) | bit(2) | bit(3);
  }
  uint64_t first_slot(int64_t key) const { return in_range(hash_within(key), buckets_); }
  uint64_t next(uint64_t bucket) const { return bucket + 1 == buckets_ ? 0 : bucket + 1; }
  void set_buckets(uint64_t buckets);
  void move_to(uint64_t buckets);
  uint64_t larger(bool doubles) const;

  std::shared_ptr<void> memory_;
  Bucket* index_ = nullptr;
  uint64_t buckets_ = 0, most_ = 0;
};

}  // namespace anabranch::sparse
