// Iterates over the windows of a pool in kernels.
#pragma once
#include <cstdint>

#include "ops/device/element.h"

namespace anabranch::device {

// A GPU needs several instructions per 64-bit operation, and many more to detect that a division fits 32 bits.
AB_HD inline int32_t quotient(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) / static_cast<uint32_t>(b));
}
AB_HD inline int32_t remainder(int32_t a, int32_t b) { return a - quotient(a, b) * b; }

template <class Index> struct PoolWindowsOf {
  Index in[3], out[3], kernel[3], stride[3], before[3];
  bool adaptive;
  template <class Args> PoolWindowsOf(const Args& a, bool adaptive) : adaptive(adaptive) {
    const auto take = [](const auto& from, Index* to) {
      for (int d = 0; d < 3; ++d) to[d] = static_cast<Index>(from[d]);
    };
    take(a.in, in);
    take(a.out, out);
    take(a.kernel, kernel);
    take(a.stride, stride);
    take(a.before, before);
  }
  AB_HD Index ins() const { return in[0] * in[1] * in[2]; }
  AB_HD Index outs() const { return out[0] * out[1] * out[2]; }
  // The elements of window k on axis d.
  AB_HD void range(int d, Index k, Index* begin, Index* end) const {
    if (adaptive) {
      *begin = quotient(k * in[d], out[d]);
      *end = quotient((k + 1) * in[d] + out[d] - 1, out[d]);
      return;
    }
    const Index first = k * stride[d] - before[d], last = first + kernel[d];
    *begin = first > 0 ? first : 0;
    *end = last < in[d] ? last : in[d];
  }
  // Windows that may contain element i of axis d: [*first, *last].
  AB_HD void windows_of(int d, Index i, Index* first, Index* last) const {
    const Index past = i + before[d] - kernel[d] + stride[d];  // below 0: all windows before i contain it
    const Index low = adaptive ? quotient(i * out[d], in[d]) - 1 : past > 0 ? quotient(past, stride[d]) : 0;
    if (!adaptive && i + before[d] < 0) {  // cropped
      *first = 0;
      *last = -1;
      return;
    }
    const Index high = adaptive ? quotient((i + 1) * out[d], in[d]) + 1 : quotient(i + before[d], stride[d]);
    *first = low > 0 ? low : 0;
    *last = high < out[d] - 1 ? high : out[d] - 1;
  }
};
using PoolWindows = PoolWindowsOf<int64_t>;

}  // namespace anabranch::device
