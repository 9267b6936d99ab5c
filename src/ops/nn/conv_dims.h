// Extents of a 2-D convolution.
#pragma once
#include "ops/nn/window.h"

namespace anabranch::nn {

struct ConvDims {
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  bool channels_last = false;
  bool blocked_input = false, blocked_output = false;  // images in the layout of ops/nn/blocked.h
  Window window;
  bool operator==(const ConvDims&) const = default;

  int64_t in_per_group() const { return in_channels / groups; }
  int64_t out_per_group() const { return out_channels / groups; }
  int64_t in_elems() const { return in_channels * window.in[0] * window.in[1]; }      // of one sample
  int64_t out_elems() const { return out_channels * window.out[0] * window.out[1]; }  // of one sample
  int64_t filter_elems() const { return out_channels * in_per_group() * window.kernel[0] * window.kernel[1]; }
  double flops_per_sample() const {
    return 2.0 * static_cast<double>(window.out[0] * window.out[1]) * static_cast<double>(filter_elems());
  }
  bool empty() const { return batch == 0 || in_elems() == 0 || out_elems() == 0 || filter_elems() == 0; }
};

// Filters are [out_channels, in_channels / groups, height, width] in both layouts of the images.
// Raises on anything that does not fit; extents may be unknown.
ConvDims conv_dims(const ir::Op& op, const Shape& input, const Shape& filter);

Shape conv_output(const ConvDims& d);

}  // namespace anabranch::nn
