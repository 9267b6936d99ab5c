// Out = max(X, 0), elementwise.
#include "opdef/device_steps.h"
#include "opdef/op_def.h"
#include "ops/declare/second_order.h"
#include "ops/device/launch.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/simd.h"

namespace anabranch::math::relu_op {
namespace {

void relu(const KernelContext& c, const float* x, float* out, int64_t n) {
  run_loop(c, kCheapGrain, n, x, out, simd::relu);
}
void relu(const KernelContext& c, const double* x, double* out, int64_t n) {
  map(c, kCheapGrain, n, x, out, [](double v) { return v < 0 ? 0 : v; });
}

void relu_grad(const KernelContext& c, const float* out, const float* dout, float* dx, int64_t n) {
  run_loop(c, kCheapGrain, n, out, dout, dx, simd::relu_grad);
}
void relu_grad(const KernelContext& c, const double* out, const double* dout, double* dx, int64_t n) {
  map(c, kCheapGrain, n, out, dout, dx, [](double y, double dy) { return dy * static_cast<double>(y > 0); });
}

AB_OP(relu)
    .doc("Rectified linear unit: Out = max(X, 0), elementwise.")
    .source("Nair & Hinton, Rectified linear units improve restricted Boltzmann machines, ICML 2010")
    .in("X", "[...] float")
    .out("Out", "[...] like X")
    .may_share("X", "Out")
    .ignores({"use_mkldnn", "use_cudnn"})
    .traits(kRowWise | kElementwise)
    .images({"X", "Out"})
    .tile("X", kCheapGrain, simd::relu)
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .grad_reads({}, {"Out"})
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        relu(c, c[x].data<T>(), c[out].mutable_data<T>(), c[x].numel());
      };
    })
    .device<float, double, float16, bfloat16>(device::map("relu"))
    .with(device_step([](const KernelArgs& op, const std::string&) {
      return DeviceStep{"relu", {op.in("X").first}};
    }));

AB_GRAD(relu)
    .doc("X@GRAD = Out@GRAD where Out > 0, else 0 (NaN where Out@GRAD is not finite).")
    .may_share("Out@GRAD", "X@GRAD")
    .grad_lod("X@GRAD", "Out@GRAD")
    .grad(second_order::diagonal)
    .tile("Out", "Out@GRAD", kCheapGrain, simd::relu_grad)
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [out = op.in("Out"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        relu_grad(c, c[out].data<T>(), c[dout].data<T>(), c[dx].mutable_data<T>(), c[out].numel());
      };
    })
    .device<float, double, float16, bfloat16>(device::map_grad("relu"))
    .with(device_step([](const KernelArgs& op, const std::string&) {
      return DeviceStep{"relu_grad", {op.in("Out").first, op.in("Out@GRAD").first}};
    }));

}  // namespace
}  // namespace anabranch::math::relu_op
