// float32 products of small matrices: for batches of them, where a library spends longer on its call than on the
// product.
#pragma once
#include <cstdint>

namespace anabranch::simd {

// C = alpha A B: A is [m, k] with any strides, B is [k, n] or stored as [n, k], C is [m, n].
struct TileProduct {
  int64_t m, n, k;
  float alpha;
  const float* a;
  int64_t a_row, a_col;
  const float* b;
  int64_t ld_b;
  bool trans_b;
  float* out;
  int64_t ld_c;

  static constexpr int64_t kMostDepth = 256;
};

// Keeps tiles of C in registers, and copies columns of B that do not fill vectors, or are stored as rows. The sum over
// k ascends for each element, so that it does not depend on the tiles. Uses fused multiply-add if the machine has it. k
// must be at most kMostDepth.
void tile_product(const TileProduct& p);

}  // namespace anabranch::simd
