// Elementwise unary functions that clip, bend or gate, one row each. Their formulas are in rectifier_functions.h, for
// float64 and for devices. Rows with .loop or .param_loop compute float32 on the CPU in vectors:
// ops/kernels/simd_functions.cc, and simd_gradients.cc for gradients.
#include "base/flags.h"
#include "ops/kernels/simd.h"
#include "ops/kernels/simd_functions.h"
#include "ops/kernels/simd_gradients.h"
#include "ops/math/activations.h"
#include "ops/math/rectifier_functions.h"

namespace anabranch::math {
namespace {

using second_order::Ops;

void declare_rectifiers() {
  activation<Relu, Gives::kBoth>(
      {.type = "relu",
       .doc = "Rectified linear unit: Out = max(X, 0), elementwise.",
       .source = "Nair & Hinton, Rectified linear units improve restricted Boltzmann machines, ICML 2010",
       .grad_of = GradOf::kOut,
       .loop = simd::relu,
       .grad_loop = simd::relu_grad,
       .grain = kCheapGrain});
  activation<Relu6>({.type = "relu6",
                     .doc = "Rectified linear unit with an upper bound: Out = min(max(X, 0), threshold)",
                     .source = "Krizhevsky, Convolutional deep belief networks, 2010",
                     .grad_of = GradOf::kOut,
                     .ignores = {},
                     .attrs = {{"threshold", 6.0f, "upper bound of the result"}}});
  activation<Brelu>(
      {.type = "brelu",
       .doc = "Clips each element to [t_min, t_max]: Out = min(max(X, t_min), t_max)",
       .grad_of = GradOf::kX,
       .ignores = {},
       .attrs = {{"t_min", 0.0f, "lower bound of the result"}, {"t_max", 24.0f, "upper bound of the result"}}});
  activation<LeakyRelu, Gives::kBoth>({.type = "leaky_relu",
                                       .doc = "Leaky rectified linear unit: Out = max(X, alpha X)",
                                       .source = "Maas et al., ICML 2013",
                                       .grad_of = GradOf::kOut,
                                       .ignores = {"use_mkldnn"},
                                       .attrs = {{"alpha", 0.02f, "slope for negative X; above 1, for positive X"}},
                                       .param_loop = simd::leaky_relu,
                                       .param_grad_loop = simd::leaky_relu_grad});
  activation<Elu, Gives::kBoth>(
      {.type = "elu",
       .doc = "Exponential linear unit: Out = max(X, 0) + min(alpha (e^X - 1), 0)",
       .source = "Clevert et al., arXiv:1511.07289",
       .grad_of = GradOf::kX,
       .ignores = {},
       .attrs = {{"alpha", 1.0f, "scale of the negative part, which tends to -alpha"}},
       .param_loop = simd::elu,
       .param_grad_loop = simd::elu_grad,
       .slope = [](Ops& o, const auto& x) {
         const std::string up = o.positive(x), down = o.scale(up, -1, 1);
         return o.add(up, o.scale(o.mul(down, o.unary("exp", o.mul(down, x))), o.attr<float>("alpha")));
       }});
  activation<Selu, Gives::kForward>(
      {.type = "selu",
       .doc = "Scaled exponential linear unit: Out = scale X where X > 0, scale alpha (e^X - 1) elsewhere",
       .source = "Klambauer et al., arXiv:1706.02515",
       .grad_of = GradOf::kOut,
       .ignores = {},
       .attrs = {{"scale", 1.0507009873554804934f, "factor for the result"},
                 {"alpha", 1.6732632423543772848f, "factor for e^X - 1"}},
       .param_loop = simd::selu,
       .grad_lod = "",
       .slope = [](Ops& o, const auto& y) {
         const float scale = o.attr<float>("scale"), limit = scale * o.attr<float>("alpha");
         const std::string up = o.positive(y);
         return o.add(o.scale(up, scale), o.mul(o.scale(up, -1, 1), o.scale(y, 1, limit)));
       }});
  activation<ThresholdedRelu>(
      {.type = "thresholded_relu",
       .doc = "Rectified linear unit with a threshold: Out = X where X > threshold, 0 elsewhere",
       .source = "Konda et al., arXiv:1402.3337",
       .grad_of = GradOf::kX,
       .ignores = {},
       .attrs = {{"threshold", 1.0f, "largest X for which the result is 0"}}});
  activation<HardShrink, Gives::kForward>(
      {.type = "hard_shrink",
       .doc = "Hard shrinkage: Out = X where X > threshold, plus X where X < -threshold, 0 elsewhere",
       .grad_of = GradOf::kX,
       .ignores = {},
       .attrs = {{"threshold", 0.5f, "bound of the interval [-threshold, threshold] in which the result is 0"}},
       .param_loop = simd::hard_shrink});
  activation<SoftShrink, Gives::kForward>(
      {.type = "softshrink",
       .doc = "Soft shrinkage: Out = X - lambda where X > lambda, plus X + lambda where X < -lambda, 0 elsewhere",
       .grad_of = GradOf::kX,
       .ignores = {},
       .attrs = {{"lambda", 0.5f, "bound of the interval [-lambda, lambda] in which the result is 0"}},
       .param_loop = simd::softshrink});
}

void declare_gates() {
  activation<Softsign>({.type = "softsign",
                        .doc = "Softsign of each element: Out = X / (1 + |X|)",
                        .source = "Glorot & Bengio, AISTATS 2010",
                        .grad_of = GradOf::kX,
                        .slope = [](Ops& o, const auto& x) {
                          return o.unary("reciprocal", o.square(o.scale(o.unary("abs", x), 1, 1)));
                        }});
  activation<Swish, Gives::kBoth>({.type = "swish",
                                   .doc = "Swish of each element: Out = X / (1 + e^(-beta X))",
                                   .source = "Ramachandran et al., arXiv:1710.05941",
                                   .grad_of = GradOf::kX,
                                   .ignores = {"use_mkldnn"},
                                   .attrs = {{"beta", 1.0f, "factor for X in the exponent"}},
                                   .param_loop = simd::swish,
                                   .param_grad_loop = simd::swish_grad,
                                   .slope = [](Ops& o, const auto& x) {
                                     const std::string in = o.scale(x, o.attr<float>("beta")),
                                                       s = o.unary("sigmoid", in);
                                     return o.add(s, o.mul(in, o.mul(s, o.scale(s, -1, 1))));
                                   }});
  activation<HardSigmoid>(
      {.type = "hard_sigmoid",
       .doc = "Piecewise linear approximation of the sigmoid: Out = min(max(slope X + offset, 0), 1)",
       .source = "Gulcehre et al., arXiv:1603.00391",
       .grad_of = GradOf::kOut,
       .ignores = {},
       .attrs = {{"slope", 0.2f, "slope of the linear part"}, {"offset", 0.5f, "offset of the linear part"}}});
  activation(
      {.type = "hard_swish",
       .doc = "Piecewise approximation of swish: Out = X min(max(X + offset, 0), threshold) / scale",
       .source = "Howard et al., arXiv:1905.02244",
       .grad_of = GradOf::kX,
       .ignores = {},
       .attrs = {{"threshold", 6.0f, "upper bound of X + offset"},
                 {"scale", 6.0f, "divisor of the result"},
                 {"offset", 3.0f, "number that is added to X"}},
       .slope =
           [](Ops& o, const auto& x) {
             const float end = o.attr<float>("threshold"), scale = o.attr<float>("scale"),
                         offset = o.attr<float>("offset");
             const std::string from = o.positive(o.scale(x, 1, offset)),
                               beyond = o.positive(o.scale(x, 1, offset - end));
             const std::string bend = o.mul(o.sub(from, beyond), o.scale(x, 2 / scale, offset / scale));
             return o.add(bend, o.scale(beyond, Flags::exact_fluid() ? 1 : end / scale));
           },
       .fluid_slope = true},
      [](auto x, auto* p) { return HardSwish::forward(x, p); },
      [](auto x, auto dy, auto* p) { return HardSwish::slope(x, dy, p, [] { return Flags::exact_fluid(); }); });
  activation<SoftRelu, Gives::kBoth>(
      {.type = "soft_relu",
       .doc = "Softplus of X clipped to [-threshold, threshold]: Out = ln(1 + e^min(max(X, -threshold), threshold))",
       .grad_of = GradOf::kOut,
       .ignores = {},
       .attrs = {{"threshold", 40.0f, "bound to which X and -X are clipped"}},
       .param_loop = simd::soft_relu,
       .param_grad_loop = simd::soft_relu_grad,
       .slope = [](Ops& o, const auto& y) {
         const float t = o.attr<float>("threshold");
         const std::string inside = o.mul(o.positive(o.scale(y, 1, t)), o.positive(o.scale(y, -1, t)));
         return o.mul(inside, o.scale(o.unary("exp", o.scale(y, -1)), -1, 1));
       }});
}

AB_OPS(declare_rectifiers);
AB_OPS(declare_gates);

}  // namespace
}  // namespace anabranch::math
