// A row times a matrix: float32, in the widest vectors of the machine.
#pragma once
#include <cstdint>

namespace anabranch::simd {

// out[j] = sum over l < k of a[l * a_stride] * b[l * ld_b + j], for j < n. Reads b once, in memory order: a library
// that packs b, or visits it by blocks of columns, spends longer on that than on the product. l ascends in each sum, so
// a result does not depend on where columns were split. Uses fused multiply-add if the machine has it.
void row_product(const float* a, int64_t a_stride, const float* b, int64_t ld_b, int64_t k, int64_t n, float* out);

}  // namespace anabranch::simd
