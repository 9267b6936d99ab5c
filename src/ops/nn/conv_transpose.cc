// Transposed convolutions: the gradient of a convolution with respect to its input, as a layer. Input and Output are
// swapped in the ConvDims of that convolution.
#include <fmt/ranges.h>

#include "ops/nn/blocked.h"
#include "ops/nn/conv_op.h"

namespace anabranch::nn::conv_transpose_op {
namespace {

// Output extents without output_size: the smallest ones that the convolution would map to the input's.
Extents smallest_output(const WindowAttrs& attrs, const Extents& in, const Extents& kernel, Window* w) {
  *w = resolve_window(attrs, {kUnknown, kUnknown, kUnknown}, kernel, Rounding::kFloor);
  if (attrs.padding_algorithm == "SAME") pad_same(in, w);  // as for a convolution of the input
  Extents out{1, 1, 1};
  for (size_t d = w->first(); d < 3; ++d) {
    out[d] = kUnknown;
    if (in[d] < 0) continue;
    out[d] = (in[d] - 1) * w->stride[d] + w->dilation[d] * (kernel[d] - 1) + 1 - w->before[d] - w->after[d];
    AB_CHECK(out[d] > 0, InvalidArgument,
             "padding must leave an output extent above 0, got padding {} and {} and extent {}", w->before[d],
             w->after[d], out[d]);
  }
  return out;
}

// output_size selects among the extents that the convolution maps to the same input, up to a stride above the smallest.
void choose_output(const std::vector<int32_t>& requested, const Window& w, Extents* out) {
  if (requested.empty()) return;
  AB_CHECK(requested.size() == static_cast<size_t>(w.axes), InvalidArgument, "output_size must be {} numbers, got [{}]",
           w.axes == 2 ? "two" : "three", fmt::join(requested, ", "));
  for (size_t k = 0; k < requested.size(); ++k) {
    int64_t& extent = (*out)[w.first() + k];
    const int64_t most = extent + w.stride[w.first() + k] - 1;
    AB_CHECK(extent < 0 || (requested[k] >= extent && requested[k] <= most), InvalidArgument,
             "output_size must be from {} to {} along axis {}, got [{}]", extent, most, k, fmt::join(requested, ", "));
    extent = requested[k];
  }
}

template <int kAxes> ConvDims transpose_dims(const ir::Op& op, const Shape& input, const Shape& filter) {
  constexpr int kRank = kAxes + 2;
  AB_CHECK(input.rank() == kRank && filter.rank() == kRank && filter.known(), InvalidArgument,
           "Input and Filter must have {} axes each, got {} and {}", kRank, input.str(), filter.str());
  const WindowAttrs attrs = read_window_attrs(op, kAxes, true);
  ConvDims d;
  d.batch = input[0];
  d.groups = op.attr<int32_t>("groups");
  d.channels_last = attrs.channels_last();
  d.blocked_input = is_blocked(op, kBlockedOutput);
  d.blocked_output = is_blocked(op, kBlockedInput);
  AB_CHECK(d.groups > 0 && filter[0] % d.groups == 0, InvalidArgument,
           "groups must divide the {} input channels, got {}", filter[0], d.groups);
  const int64_t channels = input[channel_axis(input, d.channels_last)];
  AB_CHECK(channels < 0 || channels == filter[0], ShapeMismatch, "Input must have {} channels for Filter {}, got {}",
           filter[0], filter.str(), input.str());
  const Extents in = extents_of(input, first_axis(d.channels_last), kAxes), kernel = extents_of(filter, 2, kAxes);
  AB_CHECK(volume(kernel) > 0, InvalidArgument, "Filter must have a window with elements, got {}", filter.str());
  d.out_channels = filter[0];
  d.in_channels = filter[1] * d.groups;
  Extents out = smallest_output(attrs, in, kernel, &d.window);
  choose_output(op.attr<std::vector<int32_t>>("output_size"), d.window, &out);
  d.window.in = out;
  d.window.out = in;
  return d;
}

Shape output_shape(const ConvDims& d) {
  return image_shape(d.batch, d.in_channels, d.window.in, d.window.axes, d.channels_last);
}

constexpr ConvForm kForm{.axes = 2, .transposed = true, .dims = transpose_dims<2>, .output = output_shape};
constexpr ConvForm kVolumes{.axes = 3, .transposed = true, .dims = transpose_dims<3>, .output = output_shape};

void transpose(OpDef& def) {
  def.doc("2-D transposed convolution: each input element spreads over a window of the output, weighted by the filter.")
      .source("Zeiler et al., CVPR 2010, doi:10.1109/CVPR.2010.5539957")
      .in("Input", "[N, C, H, W] float, or [N, H, W, C]")
      .in("Filter", "[C, O / groups, height, width]")
      .in_optional("Bias", "not supported")
      .out("Output", "[N, O, H', W'], or [N, H', W', O]; H' = (H - 1) s - top - bottom + d (height - 1) + 1")
      .with(convolution(kForm))
      .with(fusion_attrs)
      .attr<std::vector<int32_t>>("output_size", {},
                                  "H' and W', up to a stride above the smallest; empty: the smallest");
}

AB_OP(conv2d_transpose).with(transpose).images({"Input"}, kBlockedInput).images({"Output"}, kBlockedOutput);
AB_GRAD(conv2d_transpose).with(convolution_gradient(kForm));
AB_OP(depthwise_conv2d_transpose).with(transpose);
AB_GRAD(depthwise_conv2d_transpose).with(convolution_gradient(kForm));

AB_OP(conv3d_transpose)
    .doc("conv2d_transpose over volumes, with a depth before the height.")
    .in("Input", "[N, C, D, H, W] float, or [N, D, H, W, C]")
    .in("Filter", "[C, O / groups, depth, height, width]")
    .out("Output", "[N, O, D', H', W'], or [N, D', H', W', O]; D' = (D - 1) s - front - back + d (depth - 1) + 1")
    .with(convolution(kVolumes))
    .attr<std::vector<int32_t>>("output_size", {},
                                "D', H' and W', up to a stride above the smallest; empty: the smallest");
AB_GRAD(conv3d_transpose).with(convolution_gradient(kVolumes));

}  // namespace
}  // namespace anabranch::nn::conv_transpose_op
