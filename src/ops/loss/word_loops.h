// Products of a few cached rows, in the widest vectors of the machine (Highway, chosen at run time), for float and
// double. Rows are padded with zeros to a multiple of kPitch elements; outputs are not. Single-threaded.
#pragma once
#include <cstdint>

namespace anabranch::loss {

inline constexpr int64_t kPitch = 16;
inline int64_t padded(int64_t n) { return (n + kPitch - 1) / kPitch * kPitch; }

// out[k] = x . rows[k], over n elements
template <class T> void scores(const T* x, const T* const* rows, int64_t count, int64_t n, T* out);

// out = sum over k of factors[k * stride] * rows[k], n elements; zeros without rows
template <class T>
void combine(const T* const* rows, const T* factors, int64_t stride, int64_t count, int64_t n, T* out);

}  // namespace anabranch::loss
