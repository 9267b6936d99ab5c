#include "ops/nn/conv_dims.h"

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

template ConvDims conv_dims<2>(const ir::Op&, const Shape&, const Shape&);
template ConvDims conv_dims<3>(const ir::Op&, const Shape&, const Shape&);

}  // namespace anabranch::nn
