#include "ops/nn/conv_op.h"

#include "ops/declare/second_order.h"
#include "ops/device/conv.h"
#include "ops/device/zeros.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/work.h"
#include "ops/nn/conv_attrs.h"

namespace anabranch::nn {
namespace {

ConvDims infer_dims(const InferContext& c, const ConvForm& form) {
  check_same_dtype(c, "Input", "Filter");
  for (const char* slot : {"Bias", "ResidualData"}) {
    AB_CHECK(c.op().input(slot).empty(), Unsupported, "{} is not supported: append elementwise_add instead", slot);
  }
  return form.dims(c.op(), c.in("Input").shape, c.in("Filter").shape);
}

void infer_gradients(InferContext& c, const ConvForm& form) {
  check_shape(c, "Output@GRAD", form.output(infer_dims(c, form)));
  check_same_dtype(c, "Input", "Output@GRAD");
  grad_as(c, "Input@GRAD", "Input");
  grad_as(c, "Filter@GRAD", "Filter");
  AB_CHECK(!c.has_out("Bias@GRAD"), Unsupported, "Bias@GRAD is not supported");
}

using Dims = DimsOf<ConvDims, decltype(ConvForm::dims)>;

// Without elements to compute, results are zeros (or have no elements).
template <class T> Kernel forward(const KernelArgs& op, const ConvForm& form) {
  const auto conv =
      std::make_shared<Conv<T>>(form.transposed ? ConvPass::kBackwardData : ConvPass::kForward, operand_of(op.op()));
  return [conv, dims = Dims(op.op(), form.dims), input = op.in("Input"), filter = op.in("Filter"),
          output = op.out("Output")](KernelContext& c) mutable {
    const ConvDims& d = dims(c[input].shape(), c[filter].shape());
    if (d.empty()) {
      zeroed<T>(c, output);
      return;
    }
    conv->run(c, d, c[input].data<T>(), c[filter].data<T>(), c[output].mutable_data<T>());
  };
}

template <class T> Kernel backward(const KernelArgs& op, const ConvForm& form) {
  const Operand operand = operand_of(op.op());
  const auto data = std::make_shared<Conv<T>>(form.transposed ? ConvPass::kForward : ConvPass::kBackwardData, operand);
  const auto weights = std::make_shared<Conv<T>>(ConvPass::kBackwardFilter, operand);
  return [data, weights, transposed = form.transposed, dims = Dims(op.op(), form.dims), input = op.in("Input"),
          filter = op.in("Filter"), dout = op.in("Output@GRAD"), dinput = op.out("Input@GRAD"),
          dfilter = op.out("Filter@GRAD")](KernelContext& c) mutable {
    const ConvDims& d = dims(c[input].shape(), c[filter].shape());
    if (d.empty()) {
      zeroed<T>(c, dinput);
      zeroed<T>(c, dfilter);
      return;
    }
    const T *x = c[input].data<T>(), *g = c[dout].data<T>();
    if (T* to = needed<T>(c, dinput)) data->run(c, d, g, c[filter].data<T>(), to);
    if (T* to = needed<T>(c, dfilter)) weights->run(c, d, transposed ? g : x, transposed ? x : g, to);
  };
}

// ---- on devices

template <class T> Kernel queued_forward(const KernelArgs& op, const ConvForm& form) {
  const ConvPass pass = form.transposed ? ConvPass::kBackwardData : ConvPass::kForward;
  return [conv = device::Conv<T>(pass, operand_of(op.op())), dims = Dims(op.op(), form.dims), input = op.in("Input"),
          filter = op.in("Filter"), output = op.out("Output")](const DeviceContext& c) mutable {
    const ConvDims& d = dims(c[input].shape(), c[filter].shape());
    if (d.empty()) return device::fill_zero(c, c[output]);
    conv.run(c, d, c[input], c[filter], c[output]);
  };
}

template <class T> Kernel queued_backward(const KernelArgs& op, const ConvForm& form) {
  const Operand operand = operand_of(op.op());
  const ConvPass pass = form.transposed ? ConvPass::kForward : ConvPass::kBackwardData;
  return [data = device::Conv<T>(pass, operand), weights = device::Conv<T>(ConvPass::kBackwardFilter, operand),
          transposed = form.transposed, dims = Dims(op.op(), form.dims), input = op.in("Input"),
          filter = op.in("Filter"), dout = op.in("Output@GRAD"), dinput = op.out("Input@GRAD"),
          dfilter = op.out("Filter@GRAD")](const DeviceContext& c) mutable {
    const ConvDims& d = dims(c[input].shape(), c[filter].shape());
    if (d.empty()) {
      device::fill_zero_if_needed(c, dinput);
      device::fill_zero_if_needed(c, dfilter);
      return;
    }
    const Tensor &x = c[input], &g = c[dout];
    if (c.needs(dinput)) data.run(c, d, g, c[filter], c[dinput]);
    if (c.needs(dfilter)) weights.run(c, d, transposed ? g : x, transposed ? x : g, c[dfilter]);
  };
}

}  // namespace

std::function<void(const bool&)> refuse_fusion(const char* op) {
  return
      [op](const bool& v) { AB_CHECK(!v, Unsupported, "fused forms are not supported: append an op {} instead", op); };
}

void fusion_attrs(OpDef& def) {
  def.attr<bool>("fuse_relu", false, "not supported", refuse_fusion("relu"));
  def.attr<std::string>("fuse_activation", "", "not supported", [](const std::string& v) {
    AB_CHECK(v.empty(), Unsupported, "fuse_activation is not supported: append an op {} instead", v);
  });
  def.ignores("fuse_alpha", 0.0f).ignores("fuse_beta", 0.0f).ignores({"is_test"});
}

std::function<void(OpDef&)> convolution(const ConvForm& form) {
  return [form](OpDef& def) {
    const bool flat = form.axes == 2;
    def.with(flat ? window_attrs : volume_attrs(form.transposed ? "NCHW" : "NCDHW"));
    def.attr<std::vector<int32_t>>(
        "dilations", std::vector<int32_t>(static_cast<size_t>(form.axes), 1),
        flat ? "dilations of the window: height, width" : "dilations of the window: depth, height, width");
    def.attr<int32_t>("groups", 1, "number of independent groups of channels");
    def.ignores("use_cudnn", true).ignores({"use_mkldnn", "workspace_size_MB"});
    def.flops([form](const WorkContext& c) {
      return convolution_flops(c, form.transposed ? c.in("Input") : c.out("Output"));
    });
    def.infer([form](InferContext& c) {
      c.set_out("Output", form.output(infer_dims(c, form)), c.in("Input").dtype);
      if (!form.transposed) c.share_lod("Output", "Input");
    });
    std::vector<std::string> read{"Input", "Filter"};
    if (def.find_input("Bias")) read.emplace_back("Bias");
    def.grad_to(read);
    if (def.find_input("ResidualData") && !def.find_input("Bias")) read.emplace_back("ResidualData");  // as in Fluid
    def.grad_reads(read);
    def.cpu<float, double>([form]<class T>(TypeTag<T>, const KernelArgs& op) { return forward<T>(op, form); });
    def.device<float, double, float16, bfloat16>(
        [form]<class T>(TypeTag<T>, const KernelArgs& op) { return queued_forward<T>(op, form); });
  };
}

std::function<void(OpDef&)> convolution_gradient(const ConvForm& form) {
  return [form](OpDef& def) {
    def.infer([form](InferContext& c) { infer_gradients(c, form); });
    def.grad(second_order::bilinear("Input", "Filter"));
    def.cpu<float, double>([form]<class T>(TypeTag<T>, const KernelArgs& op) { return backward<T>(op, form); });
    def.device<float, double, float16, bfloat16>(
        [form]<class T>(TypeTag<T>, const KernelArgs& op) { return queued_backward<T>(op, form); });
  };
}

}  // namespace anabranch::nn
