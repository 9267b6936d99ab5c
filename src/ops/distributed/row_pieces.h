// Which piece of a table, each at a server of its own, has which row. Pieces follow each other by rows; those of a
// table that grows, which has no rows to count, are said to have -1 each: there the hash of a key decides.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "base/error.h"
#include "core/shape.h"
#include "sparse/hash.h"

namespace anabranch::distributed {

class RowPieces {
 public:
  // InvalidArgument, which names the attribute, for sections that are negative, or too large together.
  RowPieces(const char* attribute, std::span<const int64_t> sections) : begins_(1, 0), pieces_(sections.size()) {
    by_hash_ = pieces_ > 0 && std::all_of(sections.begin(), sections.end(), [](int64_t s) { return s == kUnknown; });
    for (size_t i = 0; i < pieces_ && !by_hash_; ++i) {
      AB_CHECK(sections[i] >= 0 && sections[i] <= INT64_MAX - begins_.back(), InvalidArgument,
               "{} must not be negative, nor add up to more than 2^63 rows, got {}", attribute, sections[i]);
      begins_.push_back(begins_.back() + sections[i]);
    }
  }
  bool by_hash() const { return by_hash_; }
  bool has(int64_t row) const { return by_hash_ || (row >= 0 && row < rows()); }
  int64_t rows() const { return by_hash_ ? kUnknown : begins_.back(); }
  int64_t begin_of(size_t piece) const { return begins_[piece]; }  // not by hash
  int64_t rows_of(size_t piece) const { return by_hash_ ? kUnknown : begins_[piece + 1] - begins_[piece]; }
  // Of a row that there is: the piece, and how the row is called there.
  size_t piece_of(int64_t row) const {
    if (by_hash_) return sparse::server_of(row, pieces_);
    return static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), row) - begins_.begin()) - 1;
  }
  int64_t within(int64_t row, size_t piece) const { return by_hash_ ? row : row - begins_[piece]; }
  bool is_in(int64_t row, size_t piece) const {
    return by_hash_ ? piece_of(row) == piece : row >= begins_[piece] && row < begins_[piece + 1];
  }

 private:
  std::vector<int64_t> begins_;  // and the end of the last piece
  size_t pieces_;
  bool by_hash_ = false;
};

}  // namespace anabranch::distributed
