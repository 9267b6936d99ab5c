// Rows of a shard that have changed since the last link of a chain of deltas: the keys of those that changed or were
// created, and the keys of rows that the chain has and that are gone. A bit for each record says which rows are listed,
// so that a row costs its 8 bytes once however often it changes. Not thread-safe: the shard's lock guards it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace anabranch::sparse {

class ShardChanges {
 public:
  // With room for the rows of `records`, and for as many keys as have changed before: rows that change do not wait for
  // memory then.
  ShardChanges(uint32_t records, size_t keys) : changed_(records / 64 + 1), fresh_(records / 64 + 1) {
    keys_.reserve(keys + keys / 8);
  }
  // Keys whose rows have changed. Some may be listed twice, and some may be gone: has() decides.
  const std::vector<int64_t>& keys() const { return keys_; }
  // Rows of the chain that were removed; their keys may have new rows.
  const std::vector<int64_t>& gone() const { return gone_; }
  bool has(uint32_t row) const { return is_set(changed_, row); }

  void touch(int64_t key, uint32_t row) {
    if (has(row)) return;
    set(&changed_, row);
    keys_.push_back(key);
    ++listed_;
  }
  void create(int64_t key, uint32_t row) {
    touch(key, row);
    set(&fresh_, row);
  }
  // Rows that were never in the chain need no record of their removal.
  void erase(int64_t key, uint32_t row) {
    if (!is_set(fresh_, row)) gone_.push_back(key);
    listed_ -= has(row);
    clear(&changed_, row);
    clear(&fresh_, row);
  }
  // Keys that come and go would lengthen the list without end. `row_of(key)`: the record, or 0.
  template <class RowOf> void trim(RowOf&& row_of) {
    if (keys_.size() < 2 * listed_ + kTrim) return;
    std::sort(keys_.begin(), keys_.end());
    keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
    std::erase_if(keys_, [&](int64_t key) {
      const uint32_t row = row_of(key);
      return row == 0 || !has(row);
    });
  }
  // The changes of a link that was not written, which belong to the next one.
  template <class RowOf> void take_back(const ShardChanges& other, RowOf&& row_of) {
    for (const int64_t key : other.keys_) {
      if (const uint32_t row = row_of(key)) touch(key, row);
    }
    gone_.insert(gone_.end(), other.gone_.begin(), other.gone_.end());
  }
  int64_t bytes() const {
    return static_cast<int64_t>(8 * (keys_.capacity() + gone_.capacity() + changed_.capacity() + fresh_.capacity()));
  }
  uint64_t listed() const { return listed_; }

 private:
  using Bits = std::vector<uint64_t>;
  static constexpr size_t kTrim = 4096;

  static bool is_set(const Bits& bits, uint32_t row) {
    return row / 64 < bits.size() && bits[row / 64] >> row % 64 & 1;
  }
  static void set(Bits* bits, uint32_t row) {
    if (row / 64 >= bits->size()) bits->resize(row / 64 + 1);
    (*bits)[row / 64] |= uint64_t{1} << row % 64;
  }
  static void clear(Bits* bits, uint32_t row) {
    if (row / 64 < bits->size()) (*bits)[row / 64] &= ~(uint64_t{1} << row % 64);
  }

  std::vector<int64_t> keys_, gone_;
  Bits changed_, fresh_;
  uint64_t listed_ = 0;  // bits of changed_
};

}  // namespace anabranch::sparse
