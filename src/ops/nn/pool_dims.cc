#include "ops/nn/pool_dims.h"

#include <fmt/ranges.h>

namespace anabranch::nn {
PoolDims pool_dims(const ir::Op& op, const Shape& input) {
  AB_CHECK(input.rank() == 4, InvalidArgument, "X must have 4 axes, got {}", input.str());
  const WindowAttrs attrs = read_window_attrs(op, false);
  const ImageAxes axes(attrs.channels_last());
  const Pair in{input[axes.height], input[axes.width]};
  PoolDims d;
  d.batch = input[0];
  d.channels = input[axes.channel];
  d.channels_last = attrs.channels_last();
  d.adaptive = op.attr<bool>("adaptive");
  d.exclusive = op.attr<bool>("exclusive");
  const auto& ksize = op.attr<std::vector<int32_t>>("ksize");
  if (op.attr<bool>("global_pooling")) {
    d.adaptive = false;
    d.window = {.in = in, .out = {1, 1}, .kernel = in};
    return d;
  }
  AB_CHECK(ksize.size() == 2 && ksize[0] > 0 && ksize[1] > 0, InvalidArgument,
           "ksize must be two numbers above 0, got [{}]", fmt::join(ksize, ", "));
  const Pair kernel{ksize[0], ksize[1]};
  if (d.adaptive) {
    d.window = {.in = in, .out = kernel, .kernel = kernel};
    return d;
  }
  const bool ceil = op.attr<bool>("ceil_mode");
  d.window = resolve_window(attrs, in, kernel, ceil ? Rounding::kCeil : Rounding::kFloor);
  return d;
}

}  // namespace anabranch::nn
