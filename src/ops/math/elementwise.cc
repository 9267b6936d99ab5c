// Elementwise binary arithmetic with broadcasting, one row each. A row defines Out from x and y, and the terms of
// X@GRAD and Y@GRAD, which are summed over the axes on which an operand was broadcast.
#include "ops/declare/declare.h"
#include "ops/kernels/simd.h"
#include "ops/kernels/simd_functions.h"
#include "ops/math/arithmetic_functions.h"
#include "ops/math/elementwise_rows.h"
#include "ops/nn/blocked.h"

namespace anabranch::math {
namespace {

// ---- second-order gradients: X@GRAD = Out@GRAD dx and Y@GRAD = Out@GRAD dy, summed over broadcast axes

using second_order::Ops;

void terms(Ops& o, const std::string& dx, const std::string& dy) {
  const std::string dout = o.in("Out@GRAD");
  const int axis = o.attr<int32_t>("axis");
  if (o.needed("X@GRAD")) o.is("X@GRAD", o.product_like("X", o.in("X"), dx, dout, axis));
  if (o.needed("Y@GRAD")) o.is("Y@GRAD", o.product_like("Y", dy, o.in("Y"), dout, axis));
}

void quotient_gradient(Ops& o) {
  const int axis = o.attr<int32_t>("axis");
  terms(o, o.unary("reciprocal", o.in("Y")), o.scale(o.binary("elementwise_div", o.in("Out"), o.in("Y"), axis), -1));
}

void power_gradient(Ops& o) {
  const int axis = o.attr<int32_t>("axis");
  const std::string x = o.in("X"), y = o.in("Y");
  const std::string lower = o.binary("elementwise_pow", x, o.scale(y, 1, -1), axis);
  const std::string whole = o.binary("elementwise_pow", x, y, axis);
  terms(o, o.binary("elementwise_mul", lower, y, axis), o.binary("elementwise_mul", whole, o.unary("log", x), axis));
}

void larger_gradient(Ops& o) {
  const std::string takes_x = o.larger(o.in("X"), o.in("Y"), o.attr<int32_t>("axis"));
  terms(o, takes_x, o.scale(takes_x, -1, 1));
}

void smaller_gradient(Ops& o) {
  const std::string takes_x = o.larger(o.scale(o.in("X"), -1), o.scale(o.in("Y"), -1), o.attr<int32_t>("axis"));
  terms(o, takes_x, o.scale(takes_x, -1, 1));
}

// ---- the rows. Integer division by zero is an error.

template <class T> T quotient(T x, T y) {
  if constexpr (std::is_integral_v<T>) AB_CHECK(y != 0, InvalidArgument, "integer division by zero");
  return quotient_of(x, y);
}

template <class T> T remainder(T x, T y) {
  if constexpr (std::is_integral_v<T>) AB_CHECK(y != 0, InvalidArgument, "integer division by zero");
  return remainder_of(x, y);
}

template <class Fn> OpDef& arithmetic(const Row& row, Fn fn) {
  OpDef& def =
      declare_forward<float, double, int32_t, int64_t>(row, fn).tile(forward_tile(row, &pair_run<float, float, Fn>));
  forward_as_step(def);
  return def;
}

void declare_sums_and_products() {
  declare_backward(arithmetic({.type = "elementwise_add",
                               .doc = "Sum of two tensors, with broadcasting: Out = X + Y",
                               .loop = simd::add,
                               .traits = kLinear},
                              [](auto x, auto y) { return Add::of(x, y); })
                       .images({"X", "Out"}, nn::kBlocked),
                   false, Same(), Same(), second_order::linear);
  declare_backward(
      arithmetic({.type = "elementwise_sub",
                  .doc = "Difference of two tensors, with broadcasting: Out = X - Y",
                  .loop = simd::sub,
                  .traits = kLinear},
                 [](auto x, auto y) { return Sub::of(x, y); }),
      false, Same(), [](auto x, auto y, auto out, auto d) { return Sub::dy(x, y, out, d); }, second_order::linear);
  declare_backward(
      arithmetic(
          {.type = "elementwise_mul",
           .doc = "Product of two tensors, with broadcasting: Out = X Y. X may hold sparse rows if Y is a scalar",
           .loop = simd::mul,
           .sparse = true},
          [](auto x, auto y) { return Mul::of(x, y); }),
      false, [](auto x, auto y, auto out, auto d) { return Mul::dx(x, y, out, d); },
      [](auto x, auto y, auto out, auto d) { return Mul::dy(x, y, out, d); }, second_order::bilinear("X", "Y"));
  declare_backward(
      arithmetic({.type = "elementwise_div",
                  .doc = "Quotient of two tensors, with broadcasting: Out = X / Y, truncated towards zero for integers",
                  .loop = simd::div,
                  .sparse = true,
                  .division = "div"},
                 [](auto x, auto y) { return quotient(x, y); }),
      true, [](auto, auto y, auto, auto d) { return quotient(d, y); },
      [](auto, auto y, auto out, auto d) { return quotient(negative(wrapping_product(d, out)), y); },
      second_order::through(quotient_gradient), true);
  declare_backward(
      arithmetic({.type = "elementwise_pow",
                  .doc = "First tensor to the power of the second, with broadcasting: Out = X^Y",
                  .loop = simd::pow},
                 [](auto x, auto y) { return Pow::of(x, y); }),
      false, [](auto x, auto y, auto out, auto d) { return Pow::dx(x, y, out, d); },
      [](auto x, auto y, auto out, auto d) { return Pow::dy(x, y, out, d); }, second_order::through(power_gradient));
}

// A tie counts for Y.
void declare_extremes() {
  declare_backward(
      arithmetic({.type = "elementwise_max",
                  .doc = "Elementwise maximum of two tensors, with broadcasting: Out = max(X, Y)",
                  .loop = simd::max},
                 [](auto x, auto y) { return Max::of(x, y); }),
      false, [](auto x, auto y, auto out, auto d) { return Max::dx(x, y, out, d); },
      [](auto x, auto y, auto out, auto d) { return Max::dy(x, y, out, d); }, second_order::through(larger_gradient));
  declare_backward(
      arithmetic({.type = "elementwise_min",
                  .doc = "Elementwise minimum of two tensors, with broadcasting: Out = min(X, Y)",
                  .loop = simd::min},
                 [](auto x, auto y) { return Min::of(x, y); }),
      false, [](auto x, auto y, auto out, auto d) { return Min::dx(x, y, out, d); },
      [](auto x, auto y, auto out, auto d) { return Min::dy(x, y, out, d); }, second_order::through(smaller_gradient));
}

void declare_divisions_with_rest() {
  arithmetic(
      {.type = "elementwise_mod",
       .doc = "Remainder of X / Y, with broadcasting. It has the sign of X for integers, and of Y for other dtypes",
       .division = "mod"},
      [](auto x, auto y) { return remainder(x, y); })
      .no_grad(kNotDifferentiable);
  declare_forward<int32_t, int64_t>(
      {.type = "elementwise_floordiv",
       .doc = "Quotient of integers, with broadcasting: Out = X / Y, truncated towards zero",
       .division = "div"},
      [](auto x, auto y) { return quotient(x, y); })
      .no_grad(kNotDifferentiable);
}

AB_OPS(declare_sums_and_products);
AB_OPS(declare_extremes);
AB_OPS(declare_divisions_with_rest);

}  // namespace
}  // namespace anabranch::math
