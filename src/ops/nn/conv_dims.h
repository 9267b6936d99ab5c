// Extents of a convolution over images or volumes.
#pragma once
#include "ops/nn/window.h"

namespace anabranch::nn {

struct ConvDims {
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  bool channels_last = false;
  bool blocked_input = false, blocked_output = false;  // images in the layout of ops/nn/blocked.h
  bool input_last = false;                             // input and filter have their channels last, the output does not
  Window window;
  bool operator==(const ConvDims&) const = default;

  int64_t in_per_group() const { return in_channels / groups; }
  int64_t out_per_group() const { return out_channels / groups; }
  int64_t in_elems() const { return in_channels * volume(window.in); }     // of one sample
  int64_t out_elems() const { return out_channels * volume(window.out); }  // of one sample
  int64_t filter_elems() const { return out_channels * in_per_group() * volume(window.kernel); }
  double flops_per_sample() const {
    return 2.0 * static_cast<double>(volume(window.out)) * static_cast<double>(filter_elems());
  }
  bool empty() const { return batch == 0 || in_elems() == 0 || out_elems() == 0 || filter_elems() == 0; }
};

// Filters are [out_channels, in_channels / groups, (depth,) height, width] in both layouts of the images. kAxes: 2 for
// images, 3 for volumes. Raises if the extents do not match; extents may be unknown.
template <int kAxes> ConvDims conv_dims(const ir::Op& op, const Shape& input, const Shape& filter);

Shape conv_output(const ConvDims& d);

// The same convolution of 2-D images as they lie in memory, with other extents, for kernels that compute several pixels
// of a row, or several channels, at a time.
ConvDims in_one_row(const ConvDims& d);
ConvDims across_as_channels(const ConvDims& d);

}  // namespace anabranch::nn
