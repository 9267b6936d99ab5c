// 2-D convolution (cross-correlation) with strides, padding, dilation and groups; the depthwise types are the same
// function with one group a channel.
#include <algorithm>

#include "ops/declare/checks.h"
#include "ops/kernels/work.h"
#include "ops/nn/conv.h"
#include "ops/nn/conv_attrs.h"

namespace anabranch::nn {
namespace {

ConvDims infer_dims(const InferContext& c) {
  check_tensor(c, "Input");
  check_same_dtype(c, "Input", "Filter");
  for (const char* slot : {"Bias", "ResidualData"}) {
    AB_CHECK(c.op().input(slot).empty(), Unsupported, "{}: {} belongs to fused forms; append elementwise_add instead",
             op_name(c), slot);
  }
  return conv_dims(c.op(), c.in("Input").shape, c.in("Filter").shape);
}

void infer(InferContext& c) {
  c.set_out("Output", conv_output(infer_dims(c)), c.in("Input").dtype);
  c.share_lod("Output", "Input");
}

void infer_grad(InferContext& c) {
  const Shape wanted = conv_output(infer_dims(c));
  AB_CHECK(compatible(wanted, c.in("Output@GRAD").shape), ShapeMismatch, "{}: Output@GRAD is {}, expected {}",
           op_name(c), c.in("Output@GRAD").shape.str(), wanted.str());
  check_same_dtype(c, "Input", "Output@GRAD");
  grad_as(c, "Input@GRAD", "Input");
  grad_as(c, "Filter@GRAD", "Filter");
  AB_CHECK(!c.has_out("Bias@GRAD"), Unsupported, "{}: Bias@GRAD belongs to fused forms", op_name(c));
}

void differentiate(GradContext& g) {
  g.op(g.forward().type + "_grad")
      .in("Input", g.in("Input"))
      .in("Filter", g.in("Filter"))
      .in("Bias", g.in("Bias"))
      .in("Output@GRAD", g.dout("Output"))
      .out("Input@GRAD", g.din("Input"))
      .out("Filter@GRAD", g.din("Filter"))
      .out("Bias@GRAD", g.din("Bias"));
}

// Nothing to compute: the output is zeros (or has no elements).
template <class T> void zero(KernelContext& c, Out out) {
  if (!c.wants(out)) return;
  T* to = c[out].mutable_data<T>();
  std::fill(to, to + c[out].numel(), T{0});
}

template <class T> Kernel forward(const KernelArgs& args) {
  const In input = args.in("Input"), filter = args.in("Filter");
  const Out output = args.out("Output");
  const auto conv = std::make_shared<Conv<T>>(ConvPass::kForward);
  DimsOf<ConvDims, decltype(&conv_dims)> dims(args.op(), conv_dims);
  return [=](KernelContext& c) mutable {
    const ConvDims& d = dims(c[input].shape(), c[filter].shape());
    if (d.empty()) return zero<T>(c, output);
    conv->run(c, d, c[input].data<T>(), c[filter].data<T>(), c[output].template mutable_data<T>());
  };
}

template <class T> Kernel backward(const KernelArgs& args) {
  const In input = args.in("Input"), filter = args.in("Filter"), dout = args.in("Output@GRAD");
  const Out dinput = args.out("Input@GRAD"), dfilter = args.out("Filter@GRAD");
  const auto data = std::make_shared<Conv<T>>(ConvPass::kBackwardData);
  const auto weights = std::make_shared<Conv<T>>(ConvPass::kBackwardFilter);
  DimsOf<ConvDims, decltype(&conv_dims)> dims(args.op(), conv_dims);
  return [=](KernelContext& c) mutable {
    const ConvDims& d = dims(c[input].shape(), c[filter].shape());
    if (d.empty()) {
      zero<T>(c, dinput);
      return zero<T>(c, dfilter);
    }
    const T* g = c[dout].data<T>();
    if (c.wants(dinput)) data->run(c, d, g, c[filter].data<T>(), c[dinput].template mutable_data<T>());
    if (c.wants(dfilter)) weights->run(c, d, c[input].data<T>(), g, c[dfilter].template mutable_data<T>());
  };
}

OpDef& declare_conv(OpDef& def) {
  def.doc(
         "2-D convolution: Output[n, o, y, x] = sum over channels and window of Input[n, i, y s + ky d - p, ...] "
         "Filter[o, i, ky, kx]; with groups each group of output channels sees its group of input channels.")
      .in("Input", "[N, C, H, W] float, or [N, H, W, C]")
      .in("Filter", "[O, C / groups, height, width]")
      .in_optional("Bias", "not offered")
      .in_optional("ResidualData", "not offered")
      .out("Output", "[N, O, H', W'], or [N, H', W', O]; H' = (H + top + bottom - d (height - 1) - 1) / s + 1");
  declare_fusion_attrs(declare_window_attrs(def))
      .attr<std::vector<int32_t>>("dilations", {1, 1}, "steps inside the window: height, width")
      .attr<int32_t>("groups", 1, "independent groups of channels")
      .attr<bool>("use_quantizer", false, "accepted, without effect")
      .attr<bool>("fuse_relu_before_depthwise_conv", false, "not offered", refuse_fusion("relu in front"))
      .attr<bool>("fuse_brelu", false, "not offered", refuse_fusion("brelu"))
      .attr<float>("fuse_brelu_threshold", 6.0f, "of fuse_brelu")
      .attr<bool>("fuse_residual_connection", false, "not offered", refuse_fusion("elementwise_add"))
      .attr<float>("Scale_in", 1.0f, "of quantized forms")
      .attr<float>("Scale_out", 1.0f, "of quantized forms")
      .attr<float>("Scale_in_eltwise", 1.0f, "of quantized forms")
      .attr<std::vector<float>>("Scale_weights", {1.0f}, "of quantized forms")
      .attr<bool>("force_fp32_output", false, "accepted, without effect")
      .attr<bool>("exhaustive_search", false, "accepted, without effect");
  def.traits(kRowWise).flops([](const WorkContext& c) { return convolution_flops(c, c.out("Output")); });
  return def.infer(infer).grad(differentiate).cpu<float, double>([](auto tag, const KernelArgs& op) {
    return forward<typename decltype(tag)::type>(op);
  });
}

OpDef& declare_conv_grad(OpDef& def) {
  return def.doc("Gradients of a 2-D convolution by its input and its filter.")
      .in("Input", "as in the forward op")
      .in("Filter", "as in the forward op")
      .in_optional("Bias", "not offered")
      .in("Output@GRAD", "as Output")
      .out("Input@GRAD", "as Input")
      .out("Filter@GRAD", "as Filter")
      .out_optional("Bias@GRAD", "not offered")
      .infer(infer_grad)
      .no_grad("second derivatives of convolutions are not offered")
      .cpu<float, double>([](auto tag, const KernelArgs& op) { return backward<typename decltype(tag)::type>(op); });
}

[[maybe_unused]] OpDef& conv2d = declare_conv(declare_op("conv2d", __FILE__))
                                     .images({"Input"}, "blocked_input")
                                     .images({"Output"}, "blocked_output");
[[maybe_unused]] OpDef& conv2d_grad = declare_conv_grad(declare_op("conv2d_grad", __FILE__));
[[maybe_unused]] OpDef& depthwise = declare_conv(declare_op("depthwise_conv2d", __FILE__));
[[maybe_unused]] OpDef& depthwise_grad = declare_conv_grad(declare_op("depthwise_conv2d_grad", __FILE__));

}  // namespace
}  // namespace anabranch::nn
