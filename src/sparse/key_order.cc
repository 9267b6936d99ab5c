#include "sparse/key_order.h"

#include "base/error.h"

namespace anabranch::sparse {

void KeyOrder::read(const int64_t* keys, int64_t n) {
  AB_CHECK(n <= INT32_MAX, Unsupported, "{} keys in one batch", n);
  items_.resize(static_cast<size_t>(n));
  shards_.resize(static_cast<size_t>(n));
  uint8_t* shards = shards_.data();
  std::array<int64_t, kShards> at{};
  for (int64_t i = 0; i < n; ++i) {
    const auto shard = static_cast<uint8_t>(shard_of(keys[i]));
    shards[i] = shard;
    ++at[shard];
  }
  int64_t sum = 0;
  for (size_t s = 0; s < at.size(); ++s) {
    starts_[s] = sum;
    sum += at[s];
    at[s] = starts_[s];
  }
  starts_.back() = sum;
  KeyAt* items = items_.data();
  for (int64_t i = 0; i < n; ++i) items[at[shards[i]]++] = {keys[i], static_cast<int32_t>(i)};
}

}  // namespace anabranch::sparse
