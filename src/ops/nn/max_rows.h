// The largest elements of windows, a row of outputs at a time, with the vectors of the machine.
#pragma once
#include <cstdint>

namespace anabranch::nn {

// out[x] = the largest of rows[r][x], r < count; a NaN is the result, the first of equal elements stays.
void max_of_rows(const float* const* rows, int count, float* out, int64_t n);
// out[x] = the largest of in[x * stride + k], k < width; likewise.
void max_of_columns(const float* in, int64_t width, int64_t stride, float* out, int64_t n);

}  // namespace anabranch::nn
