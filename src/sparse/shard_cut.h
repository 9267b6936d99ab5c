// A consistent copy of a shard, written while the shard is in use. Rows are written slice by slice, in the order of
// their hashes, which a growing index preserves. A row that changes or is removed before it is written is first saved
// as it was. So each row of the moment is written once, and changes meanwhile cost the memory of those rows only.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace anabranch::sparse {

class ShardCut {
 public:
  // `records` are in use, of `floats` numbers each; there are 2^bits slices.
  ShardCut(uint32_t records, int64_t floats, int bits)
      : records_(records), floats_(floats), bits_(bits), written_(records / 64 + 1) {}

  int bits() const { return bits_; }
  uint64_t slice() const { return slice_; }  // the next one
  bool over() const { return slice_ >> bits_ != 0; }
  // The rows of the slice have been written.
  void end_slice() { ++slice_; }

  // Whether a row belongs to the moment and is not written yet. `hash`: without the bits that choose the shard.
  bool owes(uint64_t hash, uint32_t row) const {
    return row <= records_ && (bits_ ? hash >> (64 - bits_) : 0) >= slice_ && !(written_[row / 64] >> row % 64 & 1);
  }
  // Saves a row that is about to change; it is then done.
  void keep(int64_t key, uint32_t seen, uint32_t row, const float* record) {
    append_row(key, seen, record, floats_, &kept_);
    is_new(row);
  }
  // A record that another key gets: it does not belong to the moment.
  void is_new(uint32_t row) {
    if (row <= records_) written_[row / 64] |= uint64_t{1} << row % 64;
  }
  // The rows saved since the last call.
  std::string take_kept() { return std::exchange(kept_, {}); }

  // A row in the file's format.
  static void append_row(int64_t key, uint32_t seen, const float* record, int64_t floats, std::string* to);

 private:
  const uint32_t records_;
  const int64_t floats_;
  const int bits_;
  uint64_t slice_ = 0;
  std::vector<uint64_t> written_;  // a bit for each record: written, or reused for another key
  std::string kept_;
};

}  // namespace anabranch::sparse
