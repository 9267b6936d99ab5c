// Unary functions, elementwise, that cut, bend or gate: one row each.
#include <algorithm>
#include <cmath>

#include "base/flags.h"
#include "ops/kernels/simd_functions.h"
#include "ops/math/activations.h"

namespace anabranch::math {
namespace {

using second_order::Ops;

// On how many sides x is beyond the threshold: on both where that is negative and x near 0.
template <class T> int beyond(T x, T threshold) { return (x > threshold) + (x < -threshold); }

void declare_rectifiers() {
  activation(
      {.type = "relu6",
       .doc = "Out = min(max(X, 0), threshold)",
       .source = "Krizhevsky, Convolutional deep belief networks, 2010",
       .grad_of = GradOf::kOut,
       .ignores = {},
       .attrs = {{"threshold", 6.0f, "upper end"}}},
      [](auto x, auto* p) { return std::min(std::max(x, decltype(x)(0)), p[0]); },
      [](auto y, auto dy, auto* p) { return where(y > 0 && y < p[0], dy); });
  activation(
      {.type = "brelu",
       .doc = "Out = min(max(X, t_min), t_max)",
       .grad_of = GradOf::kX,
       .ignores = {},
       .attrs = {{"t_min", 0.0f, "lower end"}, {"t_max", 24.0f, "upper end"}}},
      [](auto x, auto* p) { return std::min(std::max(x, p[0]), p[1]); },
      [](auto x, auto dy, auto* p) { return where(x > p[0] && x < p[1], dy); });
  activation(
      {.type = "leaky_relu",
       .doc = "Out = X where X > 0, else alpha X",
       .source = "Maas et al., ICML 2013",
       .grad_of = GradOf::kOut,
       .ignores = {"use_mkldnn"},
       .attrs = {{"alpha", 0.02f, "slope for negative X"}},
       .param_loop = simd::leaky_relu},
      [](auto x, auto* p) { return x > 0 ? x : p[0] * x; },
      [](auto y, auto dy, auto* p) { return y > 0 ? dy : p[0] * dy; });
  activation(
      {.type = "elu",
       .doc = "Out = max(X, 0) + min(alpha (e^X - 1), 0)",
       .source = "Clevert et al., arXiv:1511.07289",
       .grad_of = GradOf::kX,
       .ignores = {},
       .attrs = {{"alpha", 1.0f, "limit for large negative X, negated"}},
       .param_loop = simd::elu,
       .slope =
           [](Ops& o, const auto& x) {
             const std::string up = o.positive(x), down = o.scale(up, -1, 1);
             return o.add(up, o.scale(o.mul(down, o.unary("exp", o.mul(down, x))), o.attr<float>("alpha")));
           }},
      [](auto x, auto* p) {
        if (p[0] < 0) return x > 0 ? x + p[0] * std::expm1(x) : nothing_of(x);
        return x > 0 ? x : p[0] * std::expm1(x);
      },
      [](auto x, auto dy, auto* p) { return x > 0 ? dy : dy * p[0] * std::exp(x); });
  activation(
      {.type = "selu",
       .doc = "Out = scale X where X > 0, else scale alpha (e^X - 1)",
       .source = "Klambauer et al., arXiv:1706.02515",
       .grad_of = GradOf::kOut,
       .ignores = {},
       .attrs = {{"scale", 1.0507009873554804934f, ""}, {"alpha", 1.6732632423543772848f, ""}},
       .param_loop = simd::selu,
       .grad_lod = "",
       .slope =
           [](Ops& o, const auto& y) {
             const float scale = o.attr<float>("scale"), limit = scale * o.attr<float>("alpha");
             const std::string up = o.positive(y);
             return o.add(o.scale(up, scale), o.mul(o.scale(up, -1, 1), o.scale(y, 1, limit)));
           }},
      [](auto x, auto* p) { return p[0] * (x > 0 ? x : p[1] * std::expm1(x)); },
      [](auto y, auto dy, auto* p) { return y > 0 ? dy * p[0] : dy * (y + p[0] * p[1]); });
  activation(
      {.type = "thresholded_relu",
       .doc = "Out = X where X > threshold, else 0",
       .source = "Konda et al., arXiv:1402.3337",
       .grad_of = GradOf::kX,
       .ignores = {},
       .attrs = {{"threshold", 1.0f, ""}}},
      [](auto x, auto* p) { return x > p[0] ? x : nothing_of(x); },
      [](auto x, auto dy, auto* p) { return where(x > p[0], dy); });
  activation(
      {.type = "hard_shrink",
       .doc = "Out = X where X > threshold, plus X where X < -threshold, else 0",
       .grad_of = GradOf::kX,
       .ignores = {},
       .attrs = {{"threshold", 0.5f, ""}},
       .param_loop = simd::hard_shrink},
      [](auto x, auto* p) { return beyond(x, p[0]) ? x * beyond(x, p[0]) : nothing_of(x); },
      [](auto x, auto dy, auto* p) { return where(beyond(x, p[0]) > 0, dy * beyond(x, p[0])); });
  activation(
      {.type = "softshrink",
       .doc = "Out = X - lambda where X > lambda, plus X + lambda where X < -lambda, else 0",
       .grad_of = GradOf::kX,
       .ignores = {},
       .attrs = {{"lambda", 0.5f, ""}},
       .param_loop = simd::softshrink},
      [](auto x, auto* p) {
        if (x > p[0]) return x < -p[0] ? 2 * x : x - p[0];
        return x < -p[0] ? x + p[0] : nothing_of(x);
      },
      [](auto x, auto dy, auto* p) { return where(beyond(x, p[0]) > 0, dy * beyond(x, p[0])); });
}

void declare_gates() {
  activation(
      {.type = "softsign",
       .doc = "Out = X / (1 + |X|)",
       .source = "Glorot & Bengio, AISTATS 2010",
       .grad_of = GradOf::kX,
       .slope = [](Ops& o,
                   const auto& x) { return o.unary("reciprocal", o.square(o.scale(o.unary("abs", x), 1, 1))); }},
      [](auto x, auto*) { return x / (1 + std::abs(x)); },
      [](auto x, auto dy, auto*) { return dy / ((1 + std::abs(x)) * (1 + std::abs(x))); });
  activation(
      {.type = "swish",
       .doc = "Out = X / (1 + e^(-beta X))",
       .source = "Ramachandran et al., arXiv:1710.05941",
       .grad_of = GradOf::kX,
       .ignores = {"use_mkldnn"},
       .attrs = {{"beta", 1.0f, ""}},
       .param_loop = simd::swish,
       .slope =
           [](Ops& o, const auto& x) {
             const std::string in = o.scale(x, o.attr<float>("beta")), s = o.unary("sigmoid", in);
             return o.add(s, o.mul(in, o.mul(s, o.scale(s, -1, 1))));
           }},
      [](auto x, auto* p) { return x * sigmoid(p[0] * x); },
      [](auto x, auto dy, auto* p) {
        const auto s = sigmoid(p[0] * x);
        return dy * (s + p[0] * x * s * (1 - s));
      });
  activation(
      {.type = "hard_sigmoid",
       .doc = "Out = min(max(slope X + offset, 0), 1)",
       .source = "Gulcehre et al., arXiv:1603.00391",
       .grad_of = GradOf::kOut,
       .ignores = {},
       .attrs = {{"slope", 0.2f, ""}, {"offset", 0.5f, ""}}},
      [](auto x, auto* p) { return std::min(std::max(p[0] * x + p[1], decltype(x)(0)), decltype(x)(1)); },
      [](auto y, auto dy, auto* p) { return where(y > 0 && y < 1, dy * p[0]); });
  activation(
      {.type = "hard_swish",
       .doc = "Out = X min(max(X + offset, 0), threshold) / scale",
       .source = "Howard et al., arXiv:1905.02244",
       .grad_of = GradOf::kX,
       .ignores = {},
       .attrs = {{"threshold", 6.0f, ""}, {"scale", 6.0f, ""}, {"offset", 3.0f, ""}},
       .slope =
           [](Ops& o, const auto& x) {
             const float end = o.attr<float>("threshold"), scale = o.attr<float>("scale"),
                         offset = o.attr<float>("offset");
             const std::string from = o.positive(o.scale(x, 1, offset)),
                               beyond = o.positive(o.scale(x, 1, offset - end));
             const std::string bend = o.mul(o.sub(from, beyond), o.scale(x, 2 / scale, offset / scale));
             return o.add(bend, o.scale(beyond, Flags::exact_fluid() ? 1 : end / scale));
           }},
      [](auto x, auto* p) { return x * std::min(std::max(x + p[2], decltype(x)(0)), p[0]) / p[1]; },
      [](auto x, auto dy, auto* p) {
        if (x + p[2] < p[0]) return x + p[2] <= 0 ? where(false, dy) : dy * (2 * x + p[2]) / p[1];
        return Flags::exact_fluid() ? dy : dy * p[0] / p[1];  // the original forgets the slope of the straight part
      });
  activation(
      {.type = "soft_relu",
       .doc = "Out = ln(1 + e^min(max(X, -threshold), threshold))",
       .grad_of = GradOf::kOut,
       .ignores = {},
       .attrs = {{"threshold", 40.0f, "X is clipped to [-threshold, threshold]"}},
       .param_loop = simd::soft_relu,
       .slope =
           [](Ops& o, const auto& y) {
             const float t = o.attr<float>("threshold");
             const std::string inside = o.mul(o.positive(o.scale(y, 1, t)), o.positive(o.scale(y, -1, t)));
             return o.mul(inside, o.scale(o.unary("exp", o.scale(y, -1)), -1, 1));
           }},
      [](auto x, auto* p) { return softplus(std::min(std::max(x, -p[0]), p[0])); },
      [](auto y, auto dy, auto* p) { return where(y > -p[0] && y < p[0], -dy * std::expm1(-y)); });
}

AB_OPS(declare_rectifiers);
AB_OPS(declare_gates);

}  // namespace
}  // namespace anabranch::math
