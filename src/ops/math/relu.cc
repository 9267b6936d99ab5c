// Out = max(X, 0), elementwise.
#include "opdef/op_def.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/simd.h"
#include "ops/kernels/tile_loops.h"

namespace anabranch {
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

[[maybe_unused]] const bool tiles = (declare_tile("relu", "X", kCheapGrain, simd::relu),
                                     declare_tile("relu_grad", "Out", "Out@GRAD", kCheapGrain, simd::relu_grad));

}  // namespace

AB_OP(relu)
    .doc("Out = max(X, 0), elementwise.")
    .source("Nair & Hinton, Rectified linear units improve restricted Boltzmann machines, ICML 2010")
    .in("X", "[...] float")
    .out("Out", "[...] as X")
    .may_share("X", "Out")
    .attr<bool>("use_mkldnn", false, "accepted, without effect")
    .attr<bool>("use_cudnn", false, "accepted, without effect")
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .grad([](GradContext& g) {
      g.op("relu_grad").in("Out", g.out("Out")).in("Out@GRAD", g.dout("Out")).out("X@GRAD", g.din("X"));
    })
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        relu(c, c[x].data<T>(), c[out].mutable_data<T>(), c[x].numel());
      };
    });

AB_OP(relu_grad)
    .doc("X@GRAD = Out@GRAD where Out > 0, else 0 (NaN where Out@GRAD is no finite number).")
    .in("Out", "[...] float")
    .in("Out@GRAD", "[...] as Out")
    .out("X@GRAD", "[...] as Out")
    .may_share("Out@GRAD", "X@GRAD")
    .attr<bool>("use_mkldnn", false, "accepted, without effect")
    .attr<bool>("use_cudnn", false, "accepted, without effect")
    .infer([](InferContext& c) {
      AB_CHECK(compatible(c.in("Out").shape, c.in("Out@GRAD").shape), ShapeMismatch,
               "relu_grad: Out is {}, Out@GRAD is {}", c.in("Out").shape.str(), c.in("Out@GRAD").shape.str());
      c.same_as("X@GRAD", "Out@GRAD");
    })
    .no_grad("gradients of second order are not offered")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [out = op.in("Out"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        relu_grad(c, c[out].data<T>(), c[dout].data<T>(), c[dx].mutable_data<T>(), c[out].numel());
      };
    });

}  // namespace anabranch
