// A consistent copy of a shard, written while the shard is in use: all of its rows, those that have changed since the
// last link of a chain, or both. Rows are written slice by slice, all of them in the order of their hashes, which a
// growing index preserves. A row that changes or is removed before it is written is first saved as it was. So each row
// of the moment is written once, and changes meanwhile cost the memory of those rows only.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sparse/shard_changes.h"

namespace anabranch::sparse {

// Rows in the file's format.
struct CutRows {
  std::string all, changed;

  size_t bytes() const { return all.size() + changed.size(); }
};

class ShardCut {
 public:
  // `records` are in use, of `floats` numbers each. `all`: all rows, in 2^bits slices; otherwise only `changes`, in
  // slices of `keys_a_slice`.
  ShardCut(uint32_t records, int64_t floats, bool all, int bits, int64_t keys_a_slice,
           std::unique_ptr<ShardChanges> changes)
      : records_(records),
        floats_(floats),
        all_(all),
        bits_(bits),
        keys_a_slice_(static_cast<uint64_t>(keys_a_slice)),
        changes_(std::move(changes)),
        written_(records / 64 + 1) {}

  bool all() const { return all_; }
  int bits() const { return bits_; }
  uint64_t slice() const { return slice_; }  // the next one
  bool over() const { return all_ ? slice_ >> bits_ != 0 : slice_ * keys_a_slice_ >= changes_->keys().size(); }
  // The keys of the next slice of changes.
  template <class Fn> void each_key(Fn&& fn) const {
    const uint64_t end = std::min<uint64_t>(changes_->keys().size(), (slice_ + 1) * keys_a_slice_);
    for (uint64_t i = slice_ * keys_a_slice_; i < end; ++i) fn(changes_->keys()[i]);
  }
  // The rows of the slice have been written.
  void end_slice() { ++slice_; }

  // Whether a row belongs to the moment and is not written yet. `hash`: without the bits that choose the shard.
  bool owes(uint64_t hash, uint32_t row) const {
    if (row > records_ || written_[row / 64] >> row % 64 & 1) return false;
    return all_ ? (bits_ ? hash >> (64 - bits_) : 0) >= slice_ : changes_->has(row);
  }
  void write(int64_t key, uint32_t seen, uint32_t row, const float* record, CutRows* to) {
    if (all_) append_row(key, seen, record, floats_, &to->all);
    if (changes_ && changes_->has(row)) append_row(key, seen, record, floats_, &to->changed);
    if (!all_) is_done(row);
  }
  // Saves a row that is about to change; it is then done.
  void keep(int64_t key, uint32_t seen, uint32_t row, const float* record) {
    write(key, seen, row, record, &kept_);
    is_done(row);
  }
  // Also for a record that another key gets, which does not belong to the moment.
  void is_done(uint32_t row) {
    if (row <= records_) written_[row / 64] |= uint64_t{1} << row % 64;
  }
  // The rows saved since the last call.
  CutRows take_kept() { return std::exchange(kept_, {}); }
  const ShardChanges* changes() const { return changes_.get(); }
  std::unique_ptr<ShardChanges> take_changes() { return std::move(changes_); }

  // A row in the file's format.
  static void append_row(int64_t key, uint32_t seen, const float* record, int64_t floats, std::string* to);

 private:
  const uint32_t records_;
  const int64_t floats_;
  const bool all_;
  const int bits_;
  const uint64_t keys_a_slice_;
  uint64_t slice_ = 0;
  std::unique_ptr<ShardChanges> changes_;  // null: none were recorded
  std::vector<uint64_t> written_;          // a bit for each record: written, or reused for another key
  CutRows kept_;
};

}  // namespace anabranch::sparse
