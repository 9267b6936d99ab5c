// Windows of one row of outputs, in the vectors of the machine. A tap is one place of the windows: tap[x] belongs to
// output x. Buffers end at a whole number of kPoolLanes outputs, so that no loop has a remainder.
#pragma once
#include <cstdint>

namespace anabranch::nn {

inline constexpr int64_t kPoolLanes = 16;  // at least the floats of a vector

// to[k * phase_elems + j] = row[j * stride + k], for k < stride: the elements that one tap reads lie side by side.
void split_phases(const float* row, int64_t n, int64_t stride, int64_t phase_elems, float* to);
// The reverse, for the first n elements of a row.
void join_phases(const float* from, int64_t n, int64_t stride, int64_t phase_elems, float* row);

// found[x] = places[t] of the first tap t that equals top[x], or -1.
void first_equal(const float* const* taps, const int32_t* places, int count, const float* top, int32_t* found,
                 int64_t n);
// out[x] = the sum of the taps, in their order, divided by divisors[x].
void mean_of_taps(const float* const* taps, int count, const float* divisors, float* out, int64_t n);
// share[x] = dout[x] / divisors[x]; to each tap, in their order, share is added. Taps may overlap.
void add_to_taps(const float* dout, const float* divisors, float* share, float* const* taps, int count, int64_t n);

}  // namespace anabranch::nn
