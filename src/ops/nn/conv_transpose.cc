// 2-D transposed convolution: the gradient of a convolution by its input, as a layer. Input and Output change places
// in the ConvDims of that convolution.
#include <fmt/ranges.h>

#include <algorithm>

#include "ops/declare/checks.h"
#include "ops/kernels/work.h"
#include "ops/nn/conv.h"
#include "ops/nn/conv_attrs.h"

namespace anabranch::nn {
namespace {

// Output extents without output_size: those that the convolution would map onto the input's, the smallest ones.
Pair smallest_output(const std::string& op, const WindowAttrs& attrs, const Pair& in, const Pair& kernel, Window* w) {
  *w = resolve_window(op, attrs, {kUnknown, kUnknown}, kernel, Rounding::kFloor);
  if (attrs.padding_algorithm == "SAME") {  // as of a convolution over the input
    for (size_t d = 0; d < 2; ++d) {
      if (in[d] < 0) continue;
      const int64_t windows = (in[d] + w->stride[d] - 1) / w->stride[d];
      const int64_t all = std::max<int64_t>(0, (windows - 1) * w->stride[d] + kernel[d] - in[d]);
      w->before[d] = all / 2;
      w->after[d] = all - all / 2;
    }
  }
  Pair out{kUnknown, kUnknown};
  for (size_t d = 0; d < 2; ++d) {
    if (in[d] < 0) continue;
    out[d] = (in[d] - 1) * w->stride[d] + w->dilation[d] * (kernel[d] - 1) + 1 - w->before[d] - w->after[d];
    AB_CHECK(out[d] > 0, InvalidArgument, "{}: padding {} and {} leave an output extent of {}", op, w->before[d],
             w->after[d], out[d]);
  }
  return out;
}

// output_size chooses among the extents that the convolution maps onto the same input: less than a stride more.
void choose_output(const std::string& op, const std::vector<int32_t>& wanted, const Pair& stride, Pair* out) {
  if (wanted.empty()) return;
  AB_CHECK(wanted.size() == 2, InvalidArgument, "{}: output_size is [{}], expected two numbers", op,
           fmt::join(wanted, ", "));
  for (size_t d = 0; d < 2; ++d) {
    AB_CHECK((*out)[d] < 0 || (wanted[d] >= (*out)[d] && wanted[d] < (*out)[d] + stride[d]), InvalidArgument,
             "{}: output_size is [{}], expected {} to {} along axis {}", op, fmt::join(wanted, ", "), (*out)[d],
             (*out)[d] + stride[d] - 1, d);
    (*out)[d] = wanted[d];
  }
}

ConvDims transpose_dims(const ir::Op& op, const Shape& input, const Shape& filter) {
  AB_CHECK(input.rank() == 4 && filter.rank() == 4 && filter.known(), InvalidArgument,
           "{}: Input is {}, Filter is {}, expected 4 axes each", op.type, input.str(), filter.str());
  const WindowAttrs attrs = read_window_attrs(op, true);
  const ImageAxes axes(attrs.channels_last());
  ConvDims d;
  d.batch = input[0];
  d.groups = op.attr<int32_t>("groups");
  d.channels_last = attrs.channels_last();
  AB_CHECK(d.groups > 0 && filter[0] % d.groups == 0, InvalidArgument,
           "{}: {} input channels do not divide into {} groups", op.type, filter[0], d.groups);
  AB_CHECK(input[axes.channel] < 0 || input[axes.channel] == filter[0], ShapeMismatch,
           "{}: Input is {} with {} channels, Filter is {} for {}", op.type, input.str(), input[axes.channel],
           filter.str(), filter[0]);
  AB_CHECK(filter[2] > 0 && filter[3] > 0, InvalidArgument, "{}: Filter is {}", op.type, filter.str());
  d.out_channels = filter[0];
  d.in_channels = filter[1] * d.groups;
  const Pair in{input[axes.height], input[axes.width]}, kernel{filter[2], filter[3]};
  Pair out = smallest_output(op.type, attrs, in, kernel, &d.window);
  choose_output(op.type, op.attr<std::vector<int32_t>>("output_size"), d.window.stride, &out);
  d.window.in = out;
  d.window.out = in;
  return d;
}

Shape output_shape(const ConvDims& d) {
  if (d.channels_last) return {d.batch, d.window.in[0], d.window.in[1], d.in_channels};
  return {d.batch, d.in_channels, d.window.in[0], d.window.in[1]};
}

ConvDims infer_dims(const InferContext& c) {
  check_tensor(c, "Input");
  check_same_dtype(c, "Input", "Filter");
  AB_CHECK(c.op().input("Bias").empty(), Unsupported, "{}: Bias belongs to fused forms; append elementwise_add instead",
           op_name(c));
  return transpose_dims(c.op(), c.in("Input").shape, c.in("Filter").shape);
}

template <class T> void zero(KernelContext& c, Out out) {
  if (!c.wants(out)) return;
  T* to = c[out].mutable_data<T>();
  std::fill(to, to + c[out].numel(), T{0});
}

template <class T> Kernel forward(const KernelArgs& args) {
  const In input = args.in("Input"), filter = args.in("Filter");
  const Out output = args.out("Output");
  const auto conv = std::make_shared<Conv<T>>(ConvPass::kBackwardData);
  DimsOf<ConvDims, decltype(&transpose_dims)> dims(args.op(), transpose_dims);
  return [=](KernelContext& c) mutable {
    const ConvDims& d = dims(c[input].shape(), c[filter].shape());
    if (d.empty()) return zero<T>(c, output);
    conv->run(c, d, c[input].data<T>(), c[filter].data<T>(), c[output].template mutable_data<T>());
  };
}

template <class T> Kernel backward(const KernelArgs& args) {
  const In input = args.in("Input"), filter = args.in("Filter"), dout = args.in("Output@GRAD");
  const Out dinput = args.out("Input@GRAD"), dfilter = args.out("Filter@GRAD");
  const auto data = std::make_shared<Conv<T>>(ConvPass::kForward);
  const auto weights = std::make_shared<Conv<T>>(ConvPass::kBackwardFilter);
  DimsOf<ConvDims, decltype(&transpose_dims)> dims(args.op(), transpose_dims);
  return [=](KernelContext& c) mutable {
    const ConvDims& d = dims(c[input].shape(), c[filter].shape());
    if (d.empty()) {
      zero<T>(c, dinput);
      return zero<T>(c, dfilter);
    }
    const T* g = c[dout].data<T>();
    if (c.wants(dinput)) data->run(c, d, g, c[filter].data<T>(), c[dinput].template mutable_data<T>());
    if (c.wants(dfilter)) weights->run(c, d, g, c[input].data<T>(), c[dfilter].template mutable_data<T>());
  };
}

OpDef& declare_transpose(OpDef& def) {
  def.doc("2-D transposed convolution: each input element spreads over a window of the output, weighted by the filter.")
      .source("Zeiler et al., CVPR 2010, doi:10.1109/CVPR.2010.5539957")
      .in("Input", "[N, C, H, W] float, or [N, H, W, C]")
      .in("Filter", "[C, O / groups, height, width]")
      .in_optional("Bias", "not offered")
      .out("Output", "[N, O, H', W'], or [N, H', W', O]; H' = (H - 1) s - top - bottom + d (height - 1) + 1");
  declare_fusion_attrs(declare_window_attrs(def))
      .attr<std::vector<int32_t>>("dilations", {1, 1}, "steps inside the window: height, width")
      .attr<std::vector<int32_t>>("output_size", {},
                                  "H' and W', up to a stride above the smallest; empty: the smallest")
      .attr<int32_t>("groups", 1, "independent groups of channels");
  def.flops([](const WorkContext& c) { return convolution_flops(c, c.in("Input")); });
  return def.infer([](InferContext& c) { c.set_out("Output", output_shape(infer_dims(c)), c.in("Input").dtype); })
      .grad([](GradContext& g) {
        g.op(g.forward().type + "_grad")
            .in("Input", g.in("Input"))
            .in("Filter", g.in("Filter"))
            .in("Bias", g.in("Bias"))
            .in("Output@GRAD", g.dout("Output"))
            .out("Input@GRAD", g.din("Input"))
            .out("Filter@GRAD", g.din("Filter"))
            .out("Bias@GRAD", g.din("Bias"));
      })
      .cpu<float, double>([](auto tag, const KernelArgs& op) { return forward<typename decltype(tag)::type>(op); });
}

OpDef& declare_transpose_grad(OpDef& def) {
  return def.doc("Gradients of a transposed convolution by its input and its filter.")
      .in("Input", "as in the forward op")
      .in("Filter", "as in the forward op")
      .in_optional("Bias", "not offered")
      .in("Output@GRAD", "as Output")
      .out("Input@GRAD", "as Input")
      .out("Filter@GRAD", "as Filter")
      .out_optional("Bias@GRAD", "not offered")
      .infer([](InferContext& c) {
        const Shape wanted = output_shape(infer_dims(c));
        AB_CHECK(compatible(wanted, c.in("Output@GRAD").shape), ShapeMismatch, "{}: Output@GRAD is {}, expected {}",
                 op_name(c), c.in("Output@GRAD").shape.str(), wanted.str());
        check_same_dtype(c, "Input", "Output@GRAD");
        grad_as(c, "Input@GRAD", "Input");
        grad_as(c, "Filter@GRAD", "Filter");
        AB_CHECK(!c.has_out("Bias@GRAD"), Unsupported, "{}: Bias@GRAD belongs to fused forms", op_name(c));
      })
      .no_grad("second derivatives of convolutions are not offered")
      .cpu<float, double>([](auto tag, const KernelArgs& op) { return backward<typename decltype(tag)::type>(op); });
}

[[maybe_unused]] OpDef& transpose = declare_transpose(declare_op("conv2d_transpose", __FILE__));
[[maybe_unused]] OpDef& transpose_grad = declare_transpose_grad(declare_op("conv2d_transpose_grad", __FILE__));
[[maybe_unused]] OpDef& depthwise = declare_transpose(declare_op("depthwise_conv2d_transpose", __FILE__));
[[maybe_unused]] OpDef& depthwise_grad =
    declare_transpose_grad(declare_op("depthwise_conv2d_transpose_grad", __FILE__));

}  // namespace
}  // namespace anabranch::nn
