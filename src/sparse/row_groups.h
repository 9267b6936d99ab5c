// Which gradients belong to which row: rows named several times in a batch are found by hashing, in pieces that depend
// on the ids alone, so that each piece can be handled by another worker with the same result. Memory is kept between
// steps. Not thread-safe but for group() of different pieces.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace anabranch::sparse {

class RowGroups {
 public:
  struct Piece {
    const int64_t* rows = nullptr;   // distinct ids, in order of first appearance
    const int32_t* first = nullptr;  // of each: the place of its first appearance
    int64_t count = 0;
  };

  // Sorts the ids into pieces: as many as they are worth, or 2^bits (at most 64) by the highest bits of their hash.
  void read(const int64_t* ids, int64_t n, int bits = -1);
  int64_t pieces() const { return static_cast<int64_t>(starts_.size()) - 1; }
  // The distinct ids of one piece, once for each piece and read().
  Piece group(int64_t piece);
  // Places of the ids of one piece, ascending.
  const int32_t* places(int64_t piece) const { return order_.data() + starts_[static_cast<size_t>(piece)]; }
  int64_t size(int64_t piece) const {
    return starts_[static_cast<size_t>(piece) + 1] - starts_[static_cast<size_t>(piece)];
  }
  const int32_t* next() const { return next_.data(); }  // of each place: the next one with the same id, -1: none

 private:
  int bits_ = 0;                                // pieces() is 2^bits_
  std::vector<int64_t> starts_, table_starts_;  // of pieces in order_, of their hash tables
  std::vector<int32_t> order_;                  // places, piece after piece
  std::vector<int32_t> next_, first_, last_;
  std::vector<int64_t> rows_;  // ids of the places; then, from the begin of each piece on, its distinct ids
  std::vector<int32_t> table_;
  std::vector<uint8_t> piece_of_;
};

}  // namespace anabranch::sparse
