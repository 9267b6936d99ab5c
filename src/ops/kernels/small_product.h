// float32 products that are too small for a library call, in the widest vectors of the machine. Products and sums are
// rounded separately, and the order of a sum depends on its length alone: the same bits on every machine.
#pragma once
#include <cstdint>

namespace anabranch::simd {

// out[j] = alpha * (a . row j of b), over k elements, for j < n; each in sixteen partial sums, like sums.h.
void dots(float alpha, const float* a, const float* b, int64_t ld_b, int64_t k, int64_t n, float* out);

// out[j] = alpha * the sum over l < k of a[l * a_stride] * b[l * ld_b + j], for j < n; l ascends.
void weighted_rows(float alpha, const float* a, int64_t a_stride, const float* b, int64_t ld_b, int64_t k, int64_t n,
                   float* out);

// The same products, bit for bit, with rows that may be anywhere in memory: with alpha = 1 and a_stride = 1.
void dots_of_rows(const float* a, const float* const* rows, int64_t k, int64_t n, float* out);
void sum_of_rows(const float* a, const float* const* rows, int64_t k, int64_t n, float* out);

}  // namespace anabranch::simd
