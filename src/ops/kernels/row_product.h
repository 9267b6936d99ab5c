// A row times a matrix: float32, in the widest vectors of the machine.
#pragma once
#include <cstdint>

namespace anabranch::simd {

// out[j] = sum over l < k of a[l * a_stride] * b[l * ld_b + j], for j < n. Reads b once, in the order of its memory: a
// library that packs b, or walks it by blocks of columns, takes longer for that than for the product. l ascends in each
// sum, so a result does not depend on where the columns were cut. Products are added unrounded where the machine can.
void row_product(const float* a, int64_t a_stride, const float* b, int64_t ld_b, int64_t k, int64_t n, float* out);

}  // namespace anabranch::simd
