#include "ops/nn/pool_dims.h"

#include <fmt/ranges.h>

namespace anabranch::nn {
namespace {

template <class T> T attr_or(const ir::Op& op, const char* name, const T& otherwise) {
  return op.has_attr(name) ? op.attr<T>(name) : otherwise;
}

}  // namespace

PoolDims pool_dims(const ir::Op& op, const Shape& input) {
  AB_CHECK(input.rank() == 4, InvalidArgument, "{}: X is {}, expected 4 axes", op.type, input.str());
  WindowAttrs attrs{op.attr<std::vector<int32_t>>("strides"),
                    op.attr<std::vector<int32_t>>("paddings"),
                    {1, 1},
                    attr_or<std::string>(op, "padding_algorithm", "EXPLICIT"),
                    attr_or<std::string>(op, "data_format", "NCHW")};
  const ImageAxes axes(attrs.channels_last());
  const Pair in{input[axes.height], input[axes.width]};
  PoolDims d;
  d.batch = input[0];
  d.channels = input[axes.channel];
  d.channels_last = attrs.channels_last();
  d.adaptive = op.attr<bool>("adaptive");
  d.exclusive = attr_or(op, "exclusive", true);
  const auto& ksize = op.attr<std::vector<int32_t>>("ksize");
  if (op.attr<bool>("global_pooling")) {
    d.adaptive = false;
    d.window = {.in = in, .out = {1, 1}, .kernel = in};
    return d;
  }
  AB_CHECK(ksize.size() == 2 && ksize[0] > 0 && ksize[1] > 0, InvalidArgument,
           "{}: ksize is [{}], expected two numbers above 0", op.type, fmt::join(ksize, ", "));
  const Pair kernel{ksize[0], ksize[1]};
  if (d.adaptive) {
    d.window = {.in = in, .out = kernel, .kernel = kernel};
    return d;
  }
  const bool ceil = attr_or(op, "ceil_mode", false);
  d.window = resolve_window(op.type, attrs, in, kernel, ceil ? Rounding::kCeil : Rounding::kFloor);
  return d;
}

}  // namespace anabranch::nn
