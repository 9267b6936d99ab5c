// The windows of a pool as kernels walk over them.
#pragma once
#include <cstdint>

#include "ops/device/element.h"

namespace anabranch::device {

struct PoolWindows {
  int64_t in[3], out[3], kernel[3], stride[3], before[3];
  bool adaptive;
  template <class Args> PoolWindows(const Args& a, bool adaptive) : adaptive(adaptive) {
    for (int d = 0; d < 3; ++d) {
      in[d] = a.in[d], out[d] = a.out[d], kernel[d] = a.kernel[d], stride[d] = a.stride[d], before[d] = a.before[d];
    }
  }
  AB_HD int64_t ins() const { return in[0] * in[1] * in[2]; }
  AB_HD int64_t outs() const { return out[0] * out[1] * out[2]; }
  // The elements of window k on axis d.
  AB_HD void range(int d, int64_t k, int64_t* begin, int64_t* end) const {
    if (adaptive) {
      *begin = quotient(k * in[d], out[d]);
      *end = quotient((k + 1) * in[d] + out[d] - 1, out[d]);
      return;
    }
    const int64_t first = k * stride[d] - before[d], last = first + kernel[d];
    *begin = first > 0 ? first : 0;
    *end = last < in[d] ? last : in[d];
  }
  // Windows that may hold element i of axis d: [*first, *last].
  AB_HD void windows_of(int d, int64_t i, int64_t* first, int64_t* last) const {
    const int64_t past = i + before[d] - kernel[d] + stride[d];  // below 0: all windows before i hold it
    const int64_t low = adaptive ? quotient(i * out[d], in[d]) - 1 : past > 0 ? quotient(past, stride[d]) : 0;
    const int64_t high = adaptive ? quotient((i + 1) * out[d], in[d]) + 1 : quotient(i + before[d], stride[d]);
    *first = low > 0 ? low : 0;
    *last = high < out[d] - 1 ? high : out[d] - 1;
  }
};

}  // namespace anabranch::device
