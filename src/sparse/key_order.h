// The keys of a batch grouped by shard, in their order within a shard. Memory is reused between batches.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sparse/hash.h"

namespace anabranch::sparse {

struct KeyAt {
  int64_t key;
  int32_t place;  // position in the batch
};

class KeyOrder {
 public:
  static constexpr int kBits = 4;  // the highest bits of a key's hash choose the shard
  static constexpr int64_t kShards = int64_t{1} << kBits;
  static size_t shard_of(int64_t key) { return hash_id(key) >> (64 - kBits); }

  void read(const int64_t* keys, int64_t n);
  const KeyAt* begin(int64_t shard) const { return items_.data() + starts_[static_cast<size_t>(shard)]; }
  int64_t count(int64_t shard) const {
    return starts_[static_cast<size_t>(shard) + 1] - starts_[static_cast<size_t>(shard)];
  }
  int64_t first(int64_t shard) const { return starts_[static_cast<size_t>(shard)]; }

 private:
  std::array<int64_t, kShards + 1> starts_{};
  std::vector<KeyAt> items_;
  std::vector<uint8_t> shards_;
};

}  // namespace anabranch::sparse
