#include "ops/nn/conv_dims.h"

#include "ops/nn/blocked.h"

namespace anabranch::nn {

Shape conv_output(const ConvDims& d) {
  if (d.channels_last) return {d.batch, d.window.out[0], d.window.out[1], d.out_channels};
  return {d.batch, d.out_channels, d.window.out[0], d.window.out[1]};
}

ConvDims conv_dims(const ir::Op& op, const Shape& input, const Shape& filter) {
  AB_CHECK(input.rank() == 4, InvalidArgument, "Input must have 4 axes, got {}", input.str());
  AB_CHECK(filter.rank() == 4 && filter.known(), InvalidArgument, "Filter must have 4 axes, got {}", filter.str());
  const WindowAttrs attrs = read_window_attrs(op, true);
  const ImageAxes axes(attrs.channels_last());
  ConvDims d;
  d.batch = input[0];
  d.in_channels = input[axes.channel];
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
  d.window = resolve_window(attrs, {input[axes.height], input[axes.width]}, {filter[2], filter[3]}, Rounding::kFloor);
  return d;
}

}  // namespace anabranch::nn
