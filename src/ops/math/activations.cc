// Elementwise unary functions: exponentials, powers, trigonometric and step functions. One row each.
#include <cmath>
#include <numbers>
#include <type_traits>

#include "ops/kernels/simd.h"
#include "ops/kernels/simd_functions.h"
#include "ops/kernels/simd_gradients.h"
#include "ops/kernels/whole.h"
#include "ops/math/activation_functions.h"
#include "ops/math/activations.h"

namespace anabranch::math {
namespace {

using second_order::Ops;

void declare_exponentials() {
  activation<Sigmoid, Gives::kBoth>({.type = "sigmoid",
                                     .doc = "Logistic function of each element: Out = 1 / (1 + exp(-X))",
                                     .grad_of = GradOf::kOut,
                                     .loop = simd::sigmoid,
                                     .grad_loop = simd::sigmoid_grad,
                                     .slope = [](Ops& o, const auto& y) { return o.mul(y, o.scale(y, -1, 1)); }});
  activation<Tanh, Gives::kBoth>({.type = "tanh",
                                  .doc = "Hyperbolic tangent of each element: Out = tanh(X)",
                                  .grad_of = GradOf::kOut,
                                  .loop = simd::tanh,
                                  .grad_loop = simd::tanh_grad,
                                  .slope = [](Ops& o, const auto& y) { return o.scale(o.square(y), -1, 1); }});
  of_integers(activation<Exp, Gives::kBoth>({.type = "exp",
                                             .doc = "Exponential of each element: Out = e^X",
                                             .grad_of = GradOf::kOut,
                                             .loop = simd::exp,
                                             .grad_loop = simd::mul,
                                             .slope = [](Ops&, const auto& y) { return y; }}),
              []<class T>(T x) { return whole<T>(std::exp(static_cast<double>(x))); });
  activation<Log, Gives::kForward>({.type = "log",
                                    .doc = "Natural logarithm of each element: Out = ln(X)",
                                    .grad_of = GradOf::kX,
                                    .loop = simd::log,
                                    .slope = [](Ops& o, const auto& x) { return o.unary("reciprocal", x); }});
  activation<Log1p, Gives::kForward>(
      {.type = "log1p",
       .doc = "Natural logarithm of 1 plus each element: Out = ln(1 + X)",
       .grad_of = GradOf::kX,
       .loop = simd::log1p,
       .slope = [](Ops& o, const auto& x) { return o.unary("reciprocal", o.scale(x, 1, 1)); }});
  activation<Mish, Gives::kBoth>(
      {.type = "mish",
       .doc = "Out = X tanh(ln(1 + e^X))",
       .source = "Misra, BMVC 2020, arXiv:1908.08681",
       .grad_of = GradOf::kX,
       .ignores = {},
       .attrs = {{"threshold", 20.0f, "above it, and below its negative, X and e^X replace the logarithm"}},
       .param_loop = simd::mish,
       .param_grad_loop = simd::mish_grad,
       .grad_lod = "",
       .slope = [](Ops& o, const auto& x) {
         const float threshold = o.attr<float>("threshold");
         AB_CHECK(threshold <= 0 || threshold >= 20, Unsupported,
                  "threshold of mish must be at most 0 or at least 20 for second derivatives, got {}", threshold);
         const std::string t = o.unary("tanh", o.unary("softplus", x)), bend = o.mul(x, o.unary("sigmoid", x));
         return o.add(t, o.mul(bend, o.scale(o.square(t), -1, 1)));
       }});
  activation<Softplus, Gives::kBoth>({.type = "softplus",
                                      .doc = "Smooth approximation of the rectified linear unit: Out = ln(1 + e^X)",
                                      .source = "Dugas et al., NIPS 2000",
                                      .grad_of = GradOf::kX,
                                      .loop = simd::softplus,
                                      .grad_loop = simd::softplus_grad,
                                      .slope = [](Ops& o, const auto& x) { return o.unary("sigmoid", x); }});
  activation<LogSigmoid, Gives::kBoth>(
      {.type = "logsigmoid",
       .doc = "Logarithm of the sigmoid of each element: Out = ln(1 / (1 + e^-X))",
       .grad_of = GradOf::kX,
       .loop = simd::logsigmoid,
       .grad_loop = simd::logsigmoid_grad,
       .slope = [](Ops& o, const auto& x) { return o.unary("sigmoid", o.scale(x, -1)); }});
  activation<TanhShrink, Gives::kBoth>({.type = "tanh_shrink",
                                        .doc = "Each element minus its hyperbolic tangent: Out = X - tanh(X)",
                                        .grad_of = GradOf::kX,
                                        .loop = simd::tanh_shrink,
                                        .grad_loop = simd::tanh_shrink_grad,
                                        .slope = [](Ops& o, const auto& x) { return o.square(o.unary("tanh", x)); }});
  activation<Stanh, Gives::kBoth>(
      {.type = "stanh",
       .doc = "Scaled hyperbolic tangent: Out = scale_b tanh(scale_a X)",
       .source = "LeCun et al., Efficient BackProp, 1998",
       .grad_of = GradOf::kX,
       .ignores = {},
       .attrs = {{"scale_a", 0.67f, "factor for X"}, {"scale_b", 1.7159f, "factor for the result"}},
       .param_loop = simd::stanh,
       .param_grad_loop = simd::stanh_grad,
       .slope = [](Ops& o, const auto& x) {
         const float a = o.attr<float>("scale_a"), ab = a * o.attr<float>("scale_b");
         return o.scale(o.square(o.unary("tanh", o.scale(x, a))), -ab, ab);
       }});
}

void declare_powers_and_waves() {
  activation<Sqrt, Gives::kForward>(
      {.type = "sqrt",
       .doc = "Square root of each element: Out = X^(1/2)",
       .grad_of = GradOf::kOut,
       .loop = simd::sqrt,
       .slope = [](Ops& o, const auto& y) { return o.scale(o.unary("reciprocal", y), 0.5); }});
  activation<Rsqrt, Gives::kForward>(
      {.type = "rsqrt",
       .doc = "Reciprocal of the square root of each element: Out = X^(-1/2)",
       .grad_of = GradOf::kOut,
       .loop = simd::rsqrt,
       .slope = [](Ops& o, const auto& y) { return o.scale(o.mul(o.square(y), y), -0.5); }});
  of_integers(
      activation<Square, Gives::kForward>({.type = "square",
                                           .doc = "Square of each element: Out = X^2",
                                           .grad_of = GradOf::kX,
                                           .loop = simd::square,
                                           .slope = [](Ops& o, const auto& x) { return o.scale(x, 2); }}),
      []<class T>(T x) {
        return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) * static_cast<std::make_unsigned_t<T>>(x));
      });
  activation<Reciprocal, Gives::kForward>({.type = "reciprocal",
                                           .doc = "Reciprocal of each element: Out = 1 / X",
                                           .grad_of = GradOf::kOut,
                                           .loop = simd::reciprocal,
                                           .slope = [](Ops& o, const auto& y) { return o.scale(o.square(y), -1); }});
  of_integers(activation<Abs, Gives::kForward>({.type = "abs",
                                                .doc = "Absolute value of each element: Out = |X|",
                                                .grad_of = GradOf::kX,
                                                .loop = simd::abs}),
              []<class T>(T x) { return x < 0 ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x)) : x; });
  activation<Sin, Gives::kBoth>({.type = "sin",
                                 .doc = "Sine of each element, in radians: Out = sin(X)",
                                 .grad_of = GradOf::kX,
                                 .loop = simd::sin,
                                 .grad_loop = simd::sin_grad,
                                 .slope = [](Ops& o, const auto& x) { return o.unary("cos", x); }});
  activation<Cos, Gives::kBoth>({.type = "cos",
                                 .doc = "Cosine of each element, in radians: Out = cos(X)",
                                 .grad_of = GradOf::kX,
                                 .loop = simd::cos,
                                 .grad_loop = simd::cos_grad,
                                 .slope = [](Ops& o, const auto& x) { return o.scale(o.unary("sin", x), -1); }});
  activation<Acos, Gives::kForward>(
      {.type = "acos",
       .doc = "Arccosine of each element, in radians: Out = arccos(X)",
       .grad_of = GradOf::kX,
       .ignores = {},
       .loop = simd::acos,
       .slope = [](Ops& o, const auto& x) { return o.scale(o.unary("rsqrt", o.scale(o.square(x), -1, 1)), -1); }});
  activation<Asin, Gives::kForward>(
      {.type = "asin",
       .doc = "Arcsine of each element, in radians: Out = arcsin(X)",
       .grad_of = GradOf::kX,
       .ignores = {},
       .loop = simd::asin,
       .slope = [](Ops& o, const auto& x) { return o.unary("rsqrt", o.scale(o.square(x), -1, 1)); }});
  activation<Atan, Gives::kForward>(
      {.type = "atan",
       .doc = "Arctangent of each element, in radians: Out = arctan(X)",
       .grad_of = GradOf::kX,
       .ignores = {},
       .loop = simd::atan,
       .slope = [](Ops& o, const auto& x) { return o.unary("reciprocal", o.scale(o.square(x), 1, 1)); }});
  activation<Erf, Gives::kBoth>(
      {.type = "erf",
       .doc = "Error function of each element: Out = 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to X",
       .grad_of = GradOf::kX,
       .ignores = {},
       .loop = simd::erf,
       .grad_loop = simd::erf_grad,
       .grad_lod = "X",
       .slope = [](Ops& o, const auto& x) {
         return o.scale(o.unary("exp", o.scale(o.square(x), -1)), 2 * std::numbers::inv_sqrtpi);
       }});
}

void declare_steps() {  // gradient zero where it exists
  activation<Ceil, Gives::kForward>({.type = "ceil",
                                     .doc = "Rounds each element up to an integer: Out = ceil(X)",
                                     .grad_of = GradOf::kNeither,
                                     .loop = simd::ceil});
  activation<Floor, Gives::kForward>({.type = "floor",
                                      .doc = "Rounds each element down to an integer: Out = floor(X)",
                                      .grad_of = GradOf::kNeither,
                                      .loop = simd::floor});
  activation<Round, Gives::kForward>({.type = "round",
                                      .doc = "Rounds each element to the nearest integer, and halves away from zero",
                                      .grad_of = GradOf::kNeither,
                                      .loop = simd::round});
}

AB_OPS(declare_exponentials);
AB_OPS(declare_powers_and_waves);
AB_OPS(declare_steps);

}  // namespace
}  // namespace anabranch::math
