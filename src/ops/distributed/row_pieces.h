// Maps rows of a table to shards, one per server. Shards are consecutive ranges of rows; those of a growable table,
// which has no fixed number of rows, are declared as -1 each, and the hash of a key selects the shard.
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
  // InvalidArgument, naming the attribute, if sections are negative or their sum overflows.
  RowPieces(const char* attribute, std::span<const int64_t> sections) : begins_(1, 0), pieces_(sections.size()) {
    by_hash_ = pieces_ > 0 && std::all_of(sections.begin(), sections.end(), [](int64_t s) { return s == kUnknown; });
    for (size_t i = 0; i < pieces_ && !by_hash_; ++i) {
      AB_CHECK(sections[i] >= 0 && sections[i] <= INT64_MAX - begins_.back(), InvalidArgument,
               "{} must not be negative or add up to more than 2^63 rows, got {}", attribute, sections[i]);
      begins_.push_back(begins_.back() + sections[i]);
    }
  }
  bool by_hash() const { return by_hash_; }
  bool has(int64_t row) const { return by_hash_ || (row >= 0 && row < rows()); }
  int64_t rows() const { return by_hash_ ? kUnknown : begins_.back(); }
  int64_t begin_of(size_t piece) const { return begins_[piece]; }  // only for ranges
  int64_t rows_of(size_t piece) const { return by_hash_ ? kUnknown : begins_[piece + 1] - begins_[piece]; }
  // For an existing row: the shard, and the row's number there.
  size_t piece_of(int64_t row) const {
    if (by_hash_) return sparse::server_of(row, pieces_);
    return static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), row) - begins_.begin()) - 1;
  }
  int64_t within(int64_t row, size_t piece) const { return by_hash_ ? row : row - begins_[piece]; }
  bool is_in(int64_t row, size_t piece) const {
    return by_hash_ ? piece_of(row) == piece : row >= begins_[piece] && row < begins_[piece + 1];
  }

 private:
  std::vector<int64_t> begins_;  // and the end of the last shard
  size_t pieces_;
  bool by_hash_ = false;
};

}  // namespace anabranch::distributed
