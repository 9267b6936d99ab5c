// Maxima and averages of windows of images and volumes.
#include "ops/declare/attr_checks.h"
#include "ops/declare/second_order.h"
#include "ops/device/pool_call.h"
#include "ops/nn/blocked.h"
#include "ops/nn/conv_attrs.h"
#include "ops/nn/pool_blocked.h"
#include "ops/nn/pool_planes.h"

namespace anabranch::nn::pool_op {
namespace {

template <int kAxes, class T, class Pool> Kernel forward(const KernelArgs& args, Pool pool) {
  DimsOf<PoolDims, decltype(&pool_dims<kAxes>)> dims(args.op(), pool_dims<kAxes>);
  return [=, x = args.in("X"), out = args.out("Out")](KernelContext& c) mutable {
    pool_forward(c, dims(c[x].shape()), pool, c[x].data<T>(), c[out].mutable_data<T>());
  };
}

template <int kAxes, class T, class Pool> Kernel backward(const KernelArgs& args, Pool pool) {
  DimsOf<PoolDims, decltype(&pool_dims<kAxes>)> dims(args.op(), pool_dims<kAxes>);
  return [=, x = args.in("X"), out = args.in("Out"), dout = args.in("Out@GRAD"),
          dx = args.out("X@GRAD")](KernelContext& c) mutable {
    pool_backward(c, dims(c[x].shape()), pool, c[x].data<T>(), c[out].data<T>(), c[dout].data<T>(),
                  c[dx].mutable_data<T>());
  };
}

Kernel blocked_forward(const KernelArgs& args, bool max) {
  DimsOf<PoolDims, decltype(&pool_dims<2>)> dims(args.op(), pool_dims<2>);
  return [=, x = args.in("X"), out = args.out("Out")](KernelContext& c) mutable {
    const auto run = max ? blocked_max_pool : blocked_mean_pool;
    run(c, dims(c[x].shape()), c[x].data<float>(), c[out].mutable_data<float>());
  };
}

Kernel blocked_backward(const KernelArgs& args, bool max) {
  DimsOf<PoolDims, decltype(&pool_dims<2>)> dims(args.op(), pool_dims<2>);
  return [=, x = args.in("X"), out = args.in("Out"), dout = args.in("Out@GRAD"),
          dx = args.out("X@GRAD")](KernelContext& c) mutable {
    const PoolDims& d = dims(c[x].shape());
    const float* g = c[dout].data<float>();
    float* to = c[dx].mutable_data<float>();
    if (!max) return blocked_mean_pool_grad(c, d, g, to);
    blocked_max_pool_grad(c, d, c[x].data<float>(), c[out].data<float>(), g, to);
  };
}

bool is_max(const KernelArgs& op) { return op.attr<std::string>("pooling_type") == "max"; }

// ---- on devices

template <int kAxes, class T> Kernel queued_forward(const KernelArgs& args) {
  DimsOf<PoolDims, decltype(&pool_dims<kAxes>)> dims(args.op(), pool_dims<kAxes>);
  return [=, pool = device::PoolCall<T>("pool", is_max(args)), x = args.in("X"),
          out = args.out("Out")](const DeviceContext& c) mutable {
    device::PoolArgs a{};
    a.x = device::operand(c[x]);
    a.result = device::operand(c[out]);
    pool.run(c, dims(c[x].shape()), a);
  };
}

template <int kAxes, class T> Kernel queued_backward(const KernelArgs& args) {
  DimsOf<PoolDims, decltype(&pool_dims<kAxes>)> dims(args.op(), pool_dims<kAxes>);
  return [=, pool = device::PoolCall<T>("pool_grad", is_max(args)), x = args.in("X"), out = args.in("Out"),
          dout = args.in("Out@GRAD"), dx = args.out("X@GRAD")](const DeviceContext& c) mutable {
    device::PoolArgs a{};
    a.x = device::operand(c[x]);
    a.out = device::operand(c[out]);
    a.dout = device::operand(c[dout]);
    a.result = device::operand(c[dx]);
    pool.run(c, dims(c[x].shape()), a);
  };
}

template <int kAxes, class T> Kernel forward(const KernelArgs& op) {
  if (is_blocked(op.op(), kBlocked)) return blocked_forward(op, is_max(op));
  return is_max(op) ? forward<kAxes, T>(op, MaxPool<kAxes, T>{}) : forward<kAxes, T>(op, AvgPool<kAxes, T>{});
}

template <int kAxes, class T> Kernel backward(const KernelArgs& op) {
  if (is_blocked(op.op(), kBlocked)) return blocked_backward(op, is_max(op));
  return is_max(op) ? backward<kAxes, T>(op, MaxPool<kAxes, T>{}) : backward<kAxes, T>(op, AvgPool<kAxes, T>{});
}

template <int kAxes> void infer(InferContext& c) {
  const PoolDims d = pool_dims<kAxes>(c.op(), c.in("X").shape);
  AB_CHECK(volume(d.window.in) != 0, InvalidArgument, "X must hold images with elements, got {}",
           c.in("X").shape.str());
  c.set_out("Out", d.output_shape(), c.in("X").dtype);
  c.share_lod("Out", "X");
}

template <int kAxes> void pool(OpDef& def) {
  def.attr<std::string>("pooling_type", "max", "max or avg", one_of("pooling_type", {"max", "avg"}))
      .attr<std::vector<int32_t>>("ksize", std::vector<int32_t>(kAxes, 1),
                                  "extents of the window, or of the output if adaptive")
      .attr<bool>("global_pooling", false, "the window is the whole image")
      .attr<bool>("exclusive", true, "averages exclude the padding")
      .attr<bool>("adaptive", false, "windows divide the image evenly")
      .attr<bool>("ceil_mode", false, "a last window may reach beyond the image")
      .ignores({"use_cudnn", "use_mkldnn"})
      .traits(kRowWise)
      .infer(infer<kAxes>)
      .grad_reads({"X"}, {"Out"});
  def.cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return forward<kAxes, T>(op); });
  def.device<float, double, float16, bfloat16>(
      []<class T>(TypeTag<T>, const KernelArgs& op) { return queued_forward<kAxes, T>(op); });
}

void differentiate_twice(GradContext& g) {
  AB_CHECK(g.attr<std::string>("pooling_type") == "avg", Unsupported,
           "{}: second-order gradients of maxima of windows are not supported", g.forward().type);
  second_order::linear(g);
}

template <int kAxes> void pool_gradient(OpDef& def) {
  def.grad(differentiate_twice);
  def.doc("X@GRAD: a maximum passes its gradient to the first input that equals it, an average distributes it.")
      .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return backward<kAxes, T>(op); });
  def.device<float, double, float16, bfloat16>(
      []<class T>(TypeTag<T>, const KernelArgs& op) { return queued_backward<kAxes, T>(op); });
}

AB_OP(pool2d)
    .doc("Out = the maximum or average of each window of an image.")
    .in("X", "[N, C, H, W] float, or [N, H, W, C]")
    .out("Out", "[N, C, H', W'], or [N, H', W', C]; H' = (H + top + bottom - height) / stride + 1")
    .with(window_attrs)
    .with(pool<2>)
    .images({"X", "Out"}, kBlocked)
    .ignores({"use_quantizer", "is_test"});
AB_GRAD(pool2d).with(pool_gradient<2>);

AB_OP(pool3d)
    .doc("Out = the maximum or average of each window of a volume.")
    .in("X", "[N, C, D, H, W] float, or [N, D, H, W, C]")
    .out("Out", "[N, C, D', H', W'], or [N, D', H', W', C]; D' = (D + front + back - depth) / stride + 1")
    .with(volume_attrs("NCDHW"))
    .with(pool<3>);
AB_GRAD(pool3d).with(pool_gradient<3>);

}  // namespace
}  // namespace anabranch::nn::pool_op
