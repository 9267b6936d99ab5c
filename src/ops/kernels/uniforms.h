// Many numbers of a Philox draw at once, in the widest vectors of the machine: the same bits as one by one.
#pragma once
#include <cstdint>

namespace anabranch {

struct PhiloxKey {
  uint64_t key;
  uint32_t step, replica;
};

inline constexpr int64_t kUniformBlocks = 16;  // four numbers each

// out[4 i + j] = number j of block first + i, uniform in [0, 1) with 24 random bits, for kUniformBlocks blocks.
void uniform_blocks(const PhiloxKey& key, uint64_t first, float* out);

}  // namespace anabranch
