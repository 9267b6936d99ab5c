// Out = X to the power of a scalar.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/device/launch_math.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/simd_functions.h"
#include "ops/kernels/whole.h"
#include "ops/math/element_functions.h"

namespace anabranch::math::pow_op {
namespace {

// The exponent: the attribute, or the tensor that replaces it.
template <class T> struct Factor {
  In tensor;
  T fixed;
  explicit Factor(const KernelArgs& op) : tensor(op.in("FactorTensor")), fixed(of(op.attr<float>("factor"))) {}
  T get(const KernelContext& c) const {
    if (!tensor) return fixed;
    AB_CHECK(c[tensor].numel() == 1, ShapeMismatch, "FactorTensor must have shape [1], got {}",
             c[tensor].shape().str());
    return *c[tensor].data<T>();
  }
  static T of(float factor) {
    if constexpr (std::is_integral_v<T>) return whole<T>(factor);
    return static_cast<T>(factor);
  }
};

// As the first number of a kernel. An integer exponent in device memory is not checked for negative values.
template <class T> auto exponent_of(const KernelArgs& op) {
  using Number = device::Compute<T>;
  const Factor<Number> factor(op);
  AB_CHECK(!factor.tensor || std::is_floating_point_v<Number>, Unsupported,
           "FactorTensor of integers is not supported on devices");
  return [factor](const KernelContext& c, device::ScalarArgs& a) {
    if (factor.tensor) {
      a.number = device::number_of<T>(c[factor.tensor]);
      return;
    }
    AB_CHECK(factor.fixed >= 0 || std::is_floating_point_v<Number>, InvalidArgument,
             "factor must be at least 0 for integers, got {}", factor.fixed);
    device::put(a, 0, factor.fixed);
  };
}

// In chunks, each with the exponent.
void raise(const KernelContext& c, const float* x, float exponent, float* out, int64_t n) {
  c.parallel_for(n, kMathGrain, [=](int64_t begin, int64_t end) {
    constexpr int64_t kChunk = 256;
    float exponents[kChunk];
    std::fill_n(exponents, kChunk, exponent);
    for (int64_t i = begin; i < end; i += kChunk) simd::pow(x + i, exponents, out + i, std::min(kChunk, end - i));
  });
}

AB_OP(pow)
    .doc("Out = X to the power factor, elementwise.")
    .in("X", "[...] numbers; for integers the factor is truncated and must be at least 0")
    .in_optional("FactorTensor", "[1] like X: replaces factor")
    .out("Out", "[...] like X")
    .may_share("X", "Out")
    .attr<float>("factor", 1.0f, "the exponent")
    .traits(kRowWise)
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .grad_reads({"X", "FactorTensor"})
    .grad_to({"X"})
    .dtype_of_input("X")
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out"), factor = Factor<T>(op)](KernelContext& c) {
        const T p = factor.get(c);
        const auto raised = [&](auto fn) {
          map(c, kMathGrain, c[x].numel(), c[x].data<T>(), c[out].mutable_data<T>(), fn);
        };
        if constexpr (std::is_integral_v<T>) {
          AB_CHECK(p >= 0, InvalidArgument, "factor must be at least 0 for integers, got {}", p);
          raised([p](T v) { return whole_power(v, p); });
        } else if constexpr (std::is_same_v<T, float>) {
          raise(c, c[x].data<T>(), p, c[out].mutable_data<T>(), c[x].numel());
        } else {
          raised([p](T v) { return std::pow(v, p); });
        }
      };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>,
                                                                            const KernelArgs& op) -> Kernel {
      return device::scalar<T>("pow", op.in("X"), op.out("Out"), exponent_of<T>(op));
    });

AB_GRAD(pow)
    .doc("X@GRAD = Out@GRAD factor X^(factor - 1).")
    .grad(second_order::through([](second_order::Ops& o) {
      AB_CHECK(!o.given("FactorTensor"), Unsupported,
               "pow: second-order gradients with FactorTensor are not supported");
      const float factor = o.attr<float>("factor");
      const std::string lower = o.make("pow", {{"X", {o.in("X")}}}, {{"factor", factor - 1}});
      o.is("X@GRAD", o.mul(o.in("Out@GRAD"), o.scale(lower, factor)));
    }))
    .may_share("Out@GRAD", "X@GRAD")
    .grad_lod("X@GRAD", "Out@GRAD")
    .dtype_of_input("X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return
          [x = op.in("X"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), factor = Factor<T>(op)](KernelContext& c) {
            const T p = factor.get(c);
            map(c, kMathGrain, c[x].numel(), c[x].data<T>(), c[dout].data<T>(), c[dx].mutable_data<T>(),
                [p](T v, T d) { return power_grad(v, d, p); });
          };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const auto numbers = [exponent = exponent_of<T>(op), dout = op.in("Out@GRAD")](const KernelContext& c,
                                                                                     device::ScalarArgs& a) {
        exponent(c, a);
        a.dy = device::operand(c[dout]);
      };
      return device::scalar<T>("pow_grad", op.in("X"), op.out("X@GRAD"), numbers);
    });

}  // namespace
}  // namespace anabranch::math::pow_op
