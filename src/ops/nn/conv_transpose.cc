// 2-D transposed convolution: the gradient of a convolution by its input, as a layer. Input and Output change places
// in the ConvDims of that convolution.
#include <fmt/ranges.h>

#include "ops/nn/conv_op.h"

namespace anabranch::nn {
namespace {

// Output extents without output_size: those that the convolution would map onto the input's, the smallest ones.
Pair smallest_output(const WindowAttrs& attrs, const Pair& in, const Pair& kernel, Window* w) {
  *w = resolve_window(attrs, {kUnknown, kUnknown}, kernel, Rounding::kFloor);
  if (attrs.padding_algorithm == "SAME") pad_same(in, w);  // as of a convolution over the input
  Pair out{kUnknown, kUnknown};
  for (size_t d = 0; d < 2; ++d) {
    if (in[d] < 0) continue;
    out[d] = (in[d] - 1) * w->stride[d] + w->dilation[d] * (kernel[d] - 1) + 1 - w->before[d] - w->after[d];
    AB_CHECK(out[d] > 0, InvalidArgument, "padding {} and {} leave an output extent of {}", w->before[d], w->after[d],
             out[d]);
  }
  return out;
}

// output_size chooses among the extents that the convolution maps onto the same input: less than a stride more.
void choose_output(const std::vector<int32_t>& wanted, const Pair& stride, Pair* out) {
  if (wanted.empty()) return;
  AB_CHECK(wanted.size() == 2, InvalidArgument, "output_size must be two numbers, got [{}]", fmt::join(wanted, ", "));
  for (size_t d = 0; d < 2; ++d) {
    AB_CHECK((*out)[d] < 0 || (wanted[d] >= (*out)[d] && wanted[d] < (*out)[d] + stride[d]), InvalidArgument,
             "output_size must be from {} to {} along axis {}, got [{}]", (*out)[d], (*out)[d] + stride[d] - 1, d,
             fmt::join(wanted, ", "));
    (*out)[d] = wanted[d];
  }
}

ConvDims transpose_dims(const ir::Op& op, const Shape& input, const Shape& filter) {
  AB_CHECK(input.rank() == 4 && filter.rank() == 4 && filter.known(), InvalidArgument,
           "Input and Filter must have 4 axes each, got {} and {}", input.str(), filter.str());
  const WindowAttrs attrs = read_window_attrs(op, true);
  const ImageAxes axes(attrs.channels_last());
  ConvDims d;
  d.batch = input[0];
  d.groups = op.attr<int32_t>("groups");
  d.channels_last = attrs.channels_last();
  AB_CHECK(d.groups > 0 && filter[0] % d.groups == 0, InvalidArgument,
           "groups must divide the {} input channels, got {}", filter[0], d.groups);
  AB_CHECK(input[axes.channel] < 0 || input[axes.channel] == filter[0], ShapeMismatch,
           "Input must have {} channels for Filter {}, got {}", filter[0], filter.str(), input.str());
  AB_CHECK(filter[2] > 0 && filter[3] > 0, InvalidArgument, "Filter must have a window with elements, got {}",
           filter.str());
  d.out_channels = filter[0];
  d.in_channels = filter[1] * d.groups;
  const Pair in{input[axes.height], input[axes.width]}, kernel{filter[2], filter[3]};
  Pair out = smallest_output(attrs, in, kernel, &d.window);
  choose_output(op.attr<std::vector<int32_t>>("output_size"), d.window.stride, &out);
  d.window.in = out;
  d.window.out = in;
  return d;
}

Shape output_shape(const ConvDims& d) {
  if (d.channels_last) return {d.batch, d.window.in[0], d.window.in[1], d.in_channels};
  return {d.batch, d.in_channels, d.window.in[0], d.window.in[1]};
}

constexpr ConvForm kForm{.transposed = true, .dims = transpose_dims, .output = output_shape};

void transpose(OpDef& def) {
  def.doc("2-D transposed convolution: each input element spreads over a window of the output, weighted by the filter.")
      .source("Zeiler et al., CVPR 2010, doi:10.1109/CVPR.2010.5539957")
      .in("Input", "[N, C, H, W] float, or [N, H, W, C]")
      .in("Filter", "[C, O / groups, height, width]")
      .in_optional("Bias", "not offered")
      .out("Output", "[N, O, H', W'], or [N, H', W', O]; H' = (H - 1) s - top - bottom + d (height - 1) + 1")
      .with(convolution(kForm))
      .attr<std::vector<int32_t>>("output_size", {},
                                  "H' and W', up to a stride above the smallest; empty: the smallest");
}

AB_OP(conv2d_transpose).with(transpose);
AB_GRAD(conv2d_transpose).with(convolution_gradient(kForm));
AB_OP(depthwise_conv2d_transpose).with(transpose);
AB_GRAD(depthwise_conv2d_transpose).with(convolution_gradient(kForm));

}  // namespace
}  // namespace anabranch::nn
