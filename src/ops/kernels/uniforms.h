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

// out[2 i], out[2 i + 1] = the two numbers of block first + i that are uniform in [0, 1) with 53 random bits.
void uniform53_blocks(const PhiloxKey& key, uint64_t first, double* out);

// z[2 i], z[2 i + 1] = the two normal numbers of block first + i to within margin[2 i] (and the equal margin[2 i + 1]),
// which is at most 2^-43 of their distance from 0 in the plane.
void near_normal_blocks(const PhiloxKey& key, uint64_t first, double* z, double* margin);

}  // namespace anabranch
