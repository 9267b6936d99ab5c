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

class RowShards {
 public:
  // InvalidArgument, naming the attribute, if sections are negative or their sum overflows.
  RowShards(const char* attribute, std::span<const int64_t> sections) : starts_(1, 0), shards_(sections.size()) {
    by_hash_ = shards_ > 0 && std::all_of(sections.begin(), sections.end(), [](int64_t s) { return s == kUnknown; });
    for (size_t i = 0; i < shards_ && !by_hash_; ++i) {
      AB_CHECK(sections[i] >= 0 && sections[i] <= INT64_MAX - starts_.back(), InvalidArgument,
               "{} must not be negative or add up to more than 2^63 rows, got {}", attribute, sections[i]);
      starts_.push_back(starts_.back() + sections[i]);
    }
  }
  bool by_hash() const { return by_hash_; }
  bool has(int64_t row) const { return by_hash_ || (row >= 0 && row < rows()); }
  int64_t rows() const { return by_hash_ ? kUnknown : starts_.back(); }
  int64_t begin_of(size_t shard) const { return starts_[shard]; }  // only for ranges
  int64_t rows_of(size_t shard) const { return by_hash_ ? kUnknown : starts_[shard + 1] - starts_[shard]; }
  // For an existing row: the shard, and the row's number there.
  size_t shard_of(int64_t row) const {
    if (by_hash_) return sparse::server_of(row, shards_);
    return static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), row) - starts_.begin()) - 1;
  }
  int64_t within(int64_t row, size_t shard) const { return by_hash_ ? row : row - starts_[shard]; }
  bool is_in(int64_t row, size_t shard) const {
    return by_hash_ ? shard_of(row) == shard : row >= starts_[shard] && row < starts_[shard + 1];
  }

 private:
  std::vector<int64_t> starts_;  // and the end of the last shard
  size_t shards_;
  bool by_hash_ = false;
};

}  // namespace anabranch::distributed
