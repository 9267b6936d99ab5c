#include "ops/nn/conv_dims.h"

#include <utility>

#include "ops/nn/blocked.h"

namespace anabranch::nn {

Shape conv_output(const ConvDims& d) {
  return image_shape(d.batch, d.out_channels, d.window.out, d.window.axes, d.channels_last);
}

template <int kAxes> ConvDims conv_dims(const ir::Op& op, const Shape& input, const Shape& filter) {
  constexpr int kRank = kAxes + 2;
  AB_CHECK(input.rank() == kRank, InvalidArgument, "Input must have {} axes, got {}", kRank, input.str());
  AB_CHECK(filter.rank() == kRank && filter.known(), InvalidArgument, "Filter must have {} axes, got {}", kRank,
           filter.str());
  const WindowAttrs attrs = read_window_attrs(op, kAxes, true);
  ConvDims d;
  d.batch = input[0];
  d.in_channels = input[channel_axis(input, attrs.channels_last())];
  d.out_channels = filter[0];
  d.groups = op.attr<int32_t>("groups");
  d.channels_last = attrs.channels_last();
  d.blocked_input = is_blocked(op, kBlockedInput);
  d.blocked_output = is_blocked(op, kBlockedOutput);
  AB_CHECK(d.groups > 0, InvalidArgument, "groups must be at least 1, got {}", d.groups);
  AB_CHECK(d.in_channels < 0 || d.in_channels == filter[1] * d.groups, ShapeMismatch,
           "Input must have {} channels for Filter {} in {} groups, got {}", filter[1] * d.groups, filter.str(),
           d.groups, input.str());
  AB_CHECK(d.out_channels % d.groups == 0, InvalidArgument, "groups must divide the {} output channels, got {}",
           d.out_channels, d.groups);
  d.in_channels = filter[1] * d.groups;
  d.window = resolve_window(attrs, extents_of(input, first_axis(attrs.channels_last()), kAxes),
                            extents_of(filter, 2, kAxes), Rounding::kFloor);
  return d;
}

// Kernels take several pixels of a row at a time. A window of one pixel reads an image as a row, and images that are
// one pixel wide, such as sounds, are rows already.
ConvDims in_one_row(const ConvDims& given) {
  ConvDims d = given;
  Window& w = d.window;
  if (w.axes != 2) return d;
  if (w.in == w.out && w.before == Extents{} && volume(w.kernel) == 1 && volume(w.stride) == 1) {
    w.in = w.out = {1, 1, w.in[1] * w.in[2]};
  } else if (w.in[2] == 1 && w.kernel[2] == 1 && w.out[2] == 1 && w.before[2] == 0) {
    for (Extents* e : {&w.in, &w.out, &w.kernel, &w.stride, &w.before, &w.after, &w.dilation})
      std::swap((*e)[1], (*e)[2]);
  }
  return d;
}

// A window as wide as images of one channel, as over the words of a sentence: what lies across are channels, too, and
// fills vectors.
ConvDims across_as_channels(const ConvDims& given) {
  ConvDims d = given;
  Window& w = d.window;
  const bool whole = w.kernel[2] == w.in[2] && w.before[2] == 0 && w.out[2] == 1;
  const bool plain = w.axes == 2 && d.groups == 1 && !d.channels_last && !d.blocked_input;
  if (!plain || !whole || d.in_channels != 1 || w.dilation[2] != 1) return d;
  d.input_last = true;
  d.in_channels = w.in[2];
  w.in[2] = w.kernel[2] = w.stride[2] = 1;
  return d;
}

template ConvDims conv_dims<2>(const ir::Op&, const Shape&, const Shape&);
template ConvDims conv_dims<3>(const ir::Op&, const Shape&, const Shape&);

}  // namespace anabranch::nn
