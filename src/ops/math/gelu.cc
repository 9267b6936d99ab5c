// Gaussian error linear unit: Out = X P(Z <= X), Z standard normal.
#include <numbers>
#include <type_traits>

#include "opdef/device_steps.h"
#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/device/launch.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/simd_functions.h"
#include "ops/kernels/simd_gradients.h"
#include "ops/math/gelu_functions.h"

namespace anabranch::math {
namespace {

constexpr float kTanhParams[] = {GeluTanh::kScale<float>, GeluTanh::kCubic<float>};

void tanh_gelu(const float* x, float* out, int64_t n) { simd::tanh_gelu(x, kTanhParams, out, n); }

// The names of the device kernels.
const char* function_of(const KernelArgs& op) { return op.attr<bool>("approximate") ? "gelu_tanh" : "gelu"; }

TileLoop gelu_tile(const KernelArgs& op, const std::string&) {
  const UnaryLoop loop = op.attr<bool>("approximate") ? tanh_gelu : simd::gelu;
  return [x = op.in("X").first, loop](const float* const* in, float* out, int64_t n) { loop(in[x], out, n); };
}

void tanh_gelu_grad(const float* x, const float* dy, float* dx, int64_t n) {
  simd::tanh_gelu_grad(x, dy, kTanhParams, dx, n);
}

TileLoop gelu_grad_tile(const KernelArgs& op, const std::string&) {
  const BinaryLoop loop = op.attr<bool>("approximate") ? tanh_gelu_grad : simd::gelu_grad;
  return [x = op.in("X").first, dout = op.in("Out@GRAD").first, loop](const float* const* in, float* out, int64_t n) {
    loop(in[x], in[dout], out, n);
  };
}

AB_OP(gelu)
    .doc("Gaussian error linear unit: Out = X P(Z <= X), elementwise, for a standard normal variable Z.")
    .source("Hendrycks & Gimpel, Gaussian error linear units, arXiv:1606.08415")
    .in("X", "[...] float")
    .out("Out", "[...] like X")
    .may_share("X", "Out")
    .attr<bool>("approximate", false, "approximates the normal distribution function with tanh")
    .ignores({"use_mkldnn", "use_cudnn"})
    .traits(kRowWise | kElementwise)
    .tile({.make = gelu_tile, .grain = kMathGrain})
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .grad_reads({"X"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out"), approximate = op.attr<bool>("approximate")](KernelContext& c) {
        if constexpr (std::is_same_v<T, float>) {
          return run_loop(c, kMathGrain, c[x].numel(), c[x].data<T>(), c[out].mutable_data<T>(),
                          approximate ? tanh_gelu : simd::gelu);
        }
        const auto run = [&](auto fn) {
          map(c, kMathGrain, c[x].numel(), c[x].data<T>(), c[out].mutable_data<T>(), fn);
        };
        approximate ? run([](T v) { return GeluTanh::forward(v); }) : run([](T v) { return Gelu::forward(v); });
      };
    })
    .device<float, double, float16, bfloat16>(DTypeFactory([](DType dtype, const KernelArgs& op) {
      return device::map(function_of(op))(dtype, op);
    }))
    .with(device_step([](const KernelArgs& op, const std::string&) {
      return DeviceStep{function_of(op), {op.in("X").first}};
    }));

// The derivative as ops.
std::string slope(second_order::Ops& o, const std::string& x) {
  const std::string square = o.square(x);
  if (!o.attr<bool>("approximate")) {
    const std::string below = o.scale(o.unary("erf", o.scale(x, 1 / std::numbers::sqrt2)), 0.5, 0.5);
    const std::string density =
        o.scale(o.unary("exp", o.scale(square, -0.5)), std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    return o.add(below, o.mul(x, density));
  }
  constexpr double scale = GeluTanh::kScale<double>, cubic = GeluTanh::kCubic<double>;
  const std::string t = o.unary("tanh", o.mul(x, o.scale(square, scale * cubic, scale)));
  const std::string bend = o.mul(o.scale(o.square(t), -1, 1), o.scale(square, 3 * scale * cubic, scale));
  return o.scale(o.add(t, o.mul(x, bend)), 0.5, 0.5);
}

AB_GRAD(gelu)
    .doc("X@GRAD = Out@GRAD (P(Z <= X) + X p(X)).")
    .grad(second_order::through([](second_order::Ops& o) {
      o.is("X@GRAD", o.mul(o.in("Out@GRAD"), slope(o, o.in("X"))));
    }))
    .grad_lod("X@GRAD", "X")
    .may_share("Out@GRAD", "X@GRAD")
    .tile({.make = gelu_grad_tile, .grain = kMathGrain})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              approximate = op.attr<bool>("approximate")](KernelContext& c) {
        if constexpr (std::is_same_v<T, float>) {
          return run_loop(c, kMathGrain, c[x].numel(), c[x].data<T>(), c[dout].data<T>(), c[dx].mutable_data<T>(),
                          approximate ? tanh_gelu_grad : simd::gelu_grad);
        }
        const auto run = [&](auto fn) {
          map(c, kMathGrain, c[x].numel(), c[x].data<T>(), c[dout].data<T>(), c[dx].mutable_data<T>(), fn);
        };
        approximate ? run([](T v, T d) { return GeluTanh::backward(v, d); })
                    : run([](T v, T d) { return Gelu::backward(v, d); });
      };
    })
    .device<float, double, float16, bfloat16>(DTypeFactory([](DType dtype, const KernelArgs& op) {
      return device::map_grad(function_of(op))(dtype, op);
    }))
    .with(device_step([](const KernelArgs& op, const std::string&) {
      return DeviceStep{std::string(function_of(op)) + "_grad", {op.in("X").first, op.in("Out@GRAD").first}};
    }));

}  // namespace
}  // namespace anabranch::math
