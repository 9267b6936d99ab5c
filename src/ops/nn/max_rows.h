// Maxima of windows, one row of outputs at a time, in the vectors of the machine.
#pragma once
#include <cstdint>

namespace anabranch::nn {

// out[x] = the maximum of rows[r][x], r < count; NaN propagates, the first of equal elements wins.
void max_of_rows(const float* const* rows, int count, float* out, int64_t n);
// out[x] = the maximum of in[x * stride + k], k < width; likewise. Reads one element more.
void max_of_columns(const float* in, int64_t width, int64_t stride, float* out, int64_t n);

}  // namespace anabranch::nn
