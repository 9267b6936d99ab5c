#include "ops/nn/pool_dims.h"

namespace anabranch::nn {
template <int kAxes> PoolDims pool_dims(const ir::Op& op, const Shape& input) {
  constexpr int kRank = kAxes + 2;
  AB_CHECK(input.rank() == kRank, InvalidArgument, "X must have {} axes, got {}", kRank, input.str());
  const WindowAttrs attrs = read_window_attrs(op, kAxes, false);
  const Extents in = extents_of(input, first_axis(attrs.channels_last()), kAxes);
  PoolDims d;
  d.batch = input[0];
  d.channels = input[channel_axis(input, attrs.channels_last())];
  d.channels_last = attrs.channels_last();
  d.adaptive = op.attr<bool>("adaptive");
  d.exclusive = op.attr<bool>("exclusive");
  if (op.attr<bool>("global_pooling")) {
    d.adaptive = false;
    d.window = {.axes = kAxes, .in = in, .kernel = in};
    return d;
  }
  const Extents kernel = positive_extents("ksize", op.attr<std::vector<int32_t>>("ksize"), kAxes);
  if (d.adaptive) {
    d.window = {.axes = kAxes, .in = in, .out = kernel, .kernel = kernel};
    return d;
  }
  const bool ceil = op.attr<bool>("ceil_mode");
  d.window = resolve_window(attrs, in, kernel, ceil ? Rounding::kCeil : Rounding::kFloor);
  return d;
}

template PoolDims pool_dims<2>(const ir::Op&, const Shape&);
template PoolDims pool_dims<3>(const ir::Op&, const Shape&);

}  // namespace anabranch::nn
