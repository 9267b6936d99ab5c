// What a shard holds at one moment, written while it goes on. Rows are written slice by slice, in the order of their
// hashes, which an index that grows keeps; a row that changes or goes before its turn is written as it was, just before
// that. So each row of the moment is written once, and what changes meanwhile costs the memory of those rows alone.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace anabranch::sparse {

class ShardCut {
 public:
  // `records` are in use now, of `floats` numbers each; there are 2^bits slices.
  ShardCut(uint32_t records, int64_t floats, int bits)
      : records_(records), floats_(floats), bits_(bits), written_(records / 64 + 1) {}

  int bits() const { return bits_; }
  uint64_t slice() const { return slice_; }  // the next one
  bool over() const { return slice_ >> bits_ != 0; }
  // Those of the slice are written, or were.
  void end_slice() { ++slice_; }

  // Whether a row is of the moment and not written yet. `hash`: without the bits that choose the shard.
  bool owes(uint64_t hash, uint32_t row) const {
    return row <= records_ && (bits_ ? hash >> (64 - bits_) : 0) >= slice_ && !(written_[row / 64] >> row % 64 & 1);
  }
  // A row that is about to change is kept as it is; it is not owed any more.
  void keep(int64_t key, uint32_t seen, uint32_t row, const float* record) {
    append_row(key, seen, record, floats_, &kept_);
    is_new(row);
  }
  // A record that another key gets: it is not of the moment.
  void is_new(uint32_t row) {
    if (row <= records_) written_[row / 64] |= uint64_t{1} << row % 64;
  }
  // The rows that were kept since this was last asked.
  std::string take_kept() { return std::exchange(kept_, {}); }

  // A row as it stands in a file.
  static void append_row(int64_t key, uint32_t seen, const float* record, int64_t floats, std::string* to);

 private:
  const uint32_t records_;
  const int64_t floats_;
  const int bits_;
  uint64_t slice_ = 0;
  std::vector<uint64_t> written_;  // a bit for each record, or of another key now
  std::string kept_;
};

}  // namespace anabranch::sparse
