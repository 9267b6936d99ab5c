// Extents of a pool over images or volumes (kAxes: 2 or 3) and the inputs of each output.
#pragma once
#include <algorithm>

#include "ops/nn/window.h"

namespace anabranch::nn {

struct PoolDims {
  int64_t batch = 0, channels = 0;
  bool channels_last = false, adaptive = false, exclusive = true;
  Window window;

  struct Range {
    int64_t begin, end;
  };
  // Inputs of output `o` along spatial axis d.
  Range range(size_t d, int64_t o) const {
    if (adaptive) {
      const int64_t in = window.in[d], out = window.out[d];
      return {o * in / out, ((o + 1) * in + out - 1) / out};
    }
    const int64_t from = o * window.stride[d] - window.before[d];
    return {std::max<int64_t>(0, from), std::min(window.in[d], from + window.kernel[d])};
  }
  // The divisor of the sum over the window.
  int64_t divisor(const Range& z, const Range& y, const Range& x) const {
    const int64_t seen = (z.end - z.begin) * (y.end - y.begin) * (x.end - x.begin);
    return exclusive || adaptive ? std::max<int64_t>(1, seen) : volume(window.kernel);
  }
  Shape output_shape() const { return image_shape(batch, channels, window.out, window.axes, channels_last); }
};

template <int kAxes> PoolDims pool_dims(const ir::Op& op, const Shape& input);

}  // namespace anabranch::nn
