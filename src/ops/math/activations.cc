// Unary functions, elementwise: one row each. A row gives Out of X (and of the op's attributes p), X@GRAD of X or Out
// and of Out@GRAD, and, where there is one, the vector loop for float32.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/flags.h"
#include "ops/declare/declare.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/simd.h"
#include "ops/kernels/whole.h"

namespace anabranch::math {
namespace {

enum class GradOf { kX, kOut, kNeither };
enum Flags : unsigned { kNone = 0, kMkldnn = 1, kCudnn = 2, kBoth = 3 };

struct FloatAttr {
  const char* name;
  float value;
  const char* doc;
};

struct Row {
  const char *type, *doc, *source = "";
  GradOf grad_of;
  unsigned flags = kBoth;
  std::vector<FloatAttr> attrs = {};
  UnaryLoop loop = nullptr;           // float32 only
  BinaryLoop grad_loop = nullptr;     // of what grad_of names, and Out@GRAD
  const char* grad_lod = "Out@GRAD";  // whose sequences the gradient carries
};

constexpr size_t kMaxParams = 3;

template <class T> struct Params {
  T p[kMaxParams] = {};
  Params(const Row& row, const KernelArgs& op) {
    for (size_t i = 0; i < row.attrs.size(); ++i) p[i] = static_cast<T>(op.attr<float>(row.attrs[i].name));
  }
};

template <class Forward> TileOp forward_tile(const Row& row, Forward forward) {
  if (row.loop) return tile_of("X", kMathGrain, row.loop);
  const auto make = [row, forward](const KernelArgs& op, const std::string&) -> TileLoop {
    return [x = op.in("X").first, params = Params<float>(row, op), forward](const float* const* in, float* out,
                                                                            int64_t n) {
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(forward(in[x][i], params.p));
    };
  };
  return {.make = make, .grain = kMathGrain};
}

template <class Forward> OpDef& declare_forward(const Row& row, Forward forward) {
  OpDef& def = declare_op(row.type, __FILE__);
  def.doc(row.doc).source(row.source).in("X", "[...] float").out("Out", "[...] as X").may_share("X", "Out");
  for (const FloatAttr& a : row.attrs) def.attr<float>(a.name, a.value, a.doc);
  if (row.flags & kMkldnn) def.ignores({"use_mkldnn"});
  if (row.flags & kCudnn) def.ignores({"use_cudnn"});
  def.traits(kRowWise | kElementwise).tile(forward_tile(row, forward));
  def.infer([](InferContext& c) { c.same_as("Out", "X"); });
  using Slots = std::vector<std::string>;
  def.grad_reads(row.grad_of == GradOf::kX ? Slots{"X"} : Slots{},
                 row.grad_of == GradOf::kOut ? Slots{"Out"} : Slots{});
  def.cpu<float, double>([row, forward](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    const In x = op.in("X");
    const Out out = op.out("Out");
    if constexpr (std::is_same_v<T, float>) {
      if (UnaryLoop loop = row.loop) {
        return [=](KernelContext& c) {
          run_loop(c, kMathGrain, c[x].numel(), c[x].data<T>(), c[out].mutable_data<T>(), loop);
        };
      }
    }
    const Params<T> params(row, op);
    return [=](KernelContext& c) {
      map(c, kMathGrain, c[x].numel(), c[x].data<T>(), c[out].mutable_data<T>(),
          [=](T v) { return static_cast<T>(forward(v, params.p)); });
    };
  });
  return def;
}

template <class Backward> TileOp backward_tile(const char* from, const Row& row, Backward backward) {
  if (row.grad_loop) return tile_of(from, "Out@GRAD", kMathGrain, row.grad_loop);
  const auto make = [row, from, backward](const KernelArgs& op, const std::string&) -> TileLoop {
    return [v = op.in(from).first, dout = op.in("Out@GRAD").first, params = Params<float>(row, op), backward](
               const float* const* in, float* out, int64_t n) {
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(backward(in[v][i], in[dout][i], params.p));
    };
  };
  return {.make = make, .grain = kMathGrain};
}

template <class Backward> void declare_backward(const Row& row, Backward backward) {
  const char* from = row.grad_of == GradOf::kX ? "X" : row.grad_of == GradOf::kOut ? "Out" : "Out@GRAD";
  OpDef& def = declare_gradient(row.type, __FILE__);
  def.may_share("Out@GRAD", "X@GRAD").grad_lod("X@GRAD", row.grad_lod).tile(backward_tile(from, row, backward));
  def.cpu<float, double>([row, from, backward](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    const In v = op.in(from), dout = op.in("Out@GRAD");
    const Out dx = op.out("X@GRAD");
    if constexpr (std::is_same_v<T, float>) {
      if (BinaryLoop loop = row.grad_loop) {
        return [=](KernelContext& c) {
          run_loop(c, kMathGrain, c[v].numel(), c[v].data<T>(), c[dout].data<T>(), c[dx].mutable_data<T>(), loop);
        };
      }
    }
    const Params<T> params(row, op);
    return [=](KernelContext& c) {
      map(c, kMathGrain, c[v].numel(), c[v].data<T>(), c[dout].data<T>(), c[dx].mutable_data<T>(),
          [=](T a, T dy) { return static_cast<T>(backward(a, dy, params.p)); });
    };
  });
}

template <class Forward, class Backward> OpDef& activation(const Row& row, Forward forward, Backward backward) {
  OpDef& def = declare_forward(row, forward);
  declare_backward(row, backward);
  return def;
}

// The few that take integers as well.
template <class Forward> void of_integers(OpDef& def, Forward forward) {
  def.cpu<int32_t, int64_t>([forward](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    return [=, x = op.in("X"), out = op.out("Out")](KernelContext& c) {
      map(c, kMathGrain, c[x].numel(), c[x].data<T>(), c[out].mutable_data<T>(), forward);
    };
  });
}

// ---- shared expressions; x, y = f(x) and dy are float or double

template <class T> T sigmoid(T x) { return T(1) / (T(1) + std::exp(-x)); }
template <class T> T softplus(T x) {  // log(1 + e^x) without overflow
  return std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x)));
}
// dy where the function moves with x, else 0; a product, so that a NaN in dy goes through.
template <class T> T where(bool moves, T dy) { return dy * static_cast<T>(moves); }
// 0, or NaN when x is one. For places where an ordered comparison of x with a number has failed.
template <class T> T nothing_of(T x) { return x == x ? T(0) : x; }

void declare_exponentials() {
  activation(
      {.type = "sigmoid",
       .doc = "Out = 1 / (1 + exp(-X))",
       .grad_of = GradOf::kOut,
       .loop = simd::sigmoid,
       .grad_loop = simd::sigmoid_grad},
      [](auto x, auto*) { return sigmoid(x); }, [](auto y, auto dy, auto*) { return dy * y * (1 - y); });
  activation(
      {.type = "tanh",
       .doc = "Out = tanh(X)",
       .grad_of = GradOf::kOut,
       .loop = simd::tanh,
       .grad_loop = simd::tanh_grad},
      [](auto x, auto*) { return std::tanh(x); }, [](auto y, auto dy, auto*) { return dy * (1 - y * y); });
  of_integers(
      activation(
          {.type = "exp", .doc = "Out = e^X", .grad_of = GradOf::kOut, .loop = simd::exp, .grad_loop = simd::mul},
          [](auto x, auto*) { return std::exp(x); }, [](auto y, auto dy, auto*) { return dy * y; }),
      []<class T>(T x) { return whole<T>(std::exp(static_cast<double>(x))); });
  activation(
      {.type = "log", .doc = "Out = ln(X)", .grad_of = GradOf::kX, .loop = simd::log},
      [](auto x, auto*) { return std::log(x); }, [](auto x, auto dy, auto*) { return dy / x; });
  activation(
      {.type = "log1p", .doc = "Out = ln(1 + X)", .grad_of = GradOf::kX}, [](auto x, auto*) { return std::log1p(x); },
      [](auto x, auto dy, auto*) { return dy / (1 + x); });
  activation(
      {.type = "mish",
       .doc = "Out = X tanh(ln(1 + e^X))",
       .source = "Misra, BMVC 2020, arXiv:1908.08681",
       .grad_of = GradOf::kX,
       .flags = kNone,
       .attrs = {{"threshold", 20.0f, "accepted, without effect: the logarithm is exact for every X"}},
       .grad_lod = ""},
      [](auto x, auto*) { return x * std::tanh(softplus(x)); },
      [](auto x, auto dy, auto*) {
        const auto t = std::tanh(softplus(x));
        return dy * (t + x * (1 - t * t) * sigmoid(x));
      });
  activation(
      {.type = "softplus", .doc = "Out = ln(1 + e^X)", .source = "Dugas et al., NIPS 2000", .grad_of = GradOf::kX},
      [](auto x, auto*) { return softplus(x); }, [](auto x, auto dy, auto*) { return dy * sigmoid(x); });
  activation(
      {.type = "logsigmoid", .doc = "Out = ln(1 / (1 + e^-X))", .grad_of = GradOf::kX},
      [](auto x, auto*) { return -softplus(-x); }, [](auto x, auto dy, auto*) { return dy * sigmoid(-x); });
  activation(
      {.type = "tanh_shrink", .doc = "Out = X - tanh(X)", .grad_of = GradOf::kX},
      [](auto x, auto*) { return x - std::tanh(x); },
      [](auto x, auto dy, auto*) {
        const auto t = std::tanh(x);
        return dy * t * t;
      });
  activation(
      {.type = "stanh",
       .doc = "Out = scale_b tanh(scale_a X)",
       .source = "LeCun et al., Efficient BackProp, 1998",
       .grad_of = GradOf::kX,
       .flags = kNone,
       .attrs = {{"scale_a", 0.67f, "factor inside"}, {"scale_b", 1.7159f, "factor outside"}}},
      [](auto x, auto* p) { return p[1] * std::tanh(p[0] * x); },
      [](auto x, auto dy, auto* p) {
        const auto t = std::tanh(p[0] * x);
        return dy * p[0] * p[1] * (1 - t * t);
      });
}

void declare_powers_and_waves() {
  activation(
      {.type = "sqrt", .doc = "Out = X^(1/2)", .grad_of = GradOf::kOut, .loop = simd::sqrt},
      [](auto x, auto*) { return std::sqrt(x); }, [](auto y, auto dy, auto*) { return dy / (2 * y); });
  activation(
      {.type = "rsqrt", .doc = "Out = X^(-1/2)", .grad_of = GradOf::kOut},
      [](auto x, auto*) { return 1 / std::sqrt(x); }, [](auto y, auto dy, auto*) { return dy * y * y * y / -2; });
  of_integers(
      activation(
          {.type = "square", .doc = "Out = X^2", .grad_of = GradOf::kX, .loop = simd::square},
          [](auto x, auto*) { return x * x; }, [](auto x, auto dy, auto*) { return dy * 2 * x; }),
      []<class T>(T x) {
        return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) * static_cast<std::make_unsigned_t<T>>(x));
      });
  activation(
      {.type = "reciprocal", .doc = "Out = 1 / X", .grad_of = GradOf::kOut}, [](auto x, auto*) { return 1 / x; },
      [](auto y, auto dy, auto*) { return -dy * y * y; });
  of_integers(activation(
                  {.type = "abs", .doc = "Out = |X|", .grad_of = GradOf::kX}, [](auto x, auto*) { return std::abs(x); },
                  [](auto x, auto dy, auto*) { return x < 0 ? -dy : where(x > 0, dy); }),
              []<class T>(T x) { return x < 0 ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x)) : x; });
  activation(
      {.type = "sin", .doc = "Out = sin(X)", .grad_of = GradOf::kX}, [](auto x, auto*) { return std::sin(x); },
      [](auto x, auto dy, auto*) { return dy * std::cos(x); });
  activation(
      {.type = "cos", .doc = "Out = cos(X)", .grad_of = GradOf::kX}, [](auto x, auto*) { return std::cos(x); },
      [](auto x, auto dy, auto*) { return -dy * std::sin(x); });
  activation(
      {.type = "acos", .doc = "Out = arccos(X)", .grad_of = GradOf::kX, .flags = kNone},
      [](auto x, auto*) { return std::acos(x); }, [](auto x, auto dy, auto*) { return -dy / std::sqrt(1 - x * x); });
  activation(
      {.type = "asin", .doc = "Out = arcsin(X)", .grad_of = GradOf::kX, .flags = kNone},
      [](auto x, auto*) { return std::asin(x); }, [](auto x, auto dy, auto*) { return dy / std::sqrt(1 - x * x); });
  activation(
      {.type = "atan", .doc = "Out = arctan(X)", .grad_of = GradOf::kX, .flags = kNone},
      [](auto x, auto*) { return std::atan(x); }, [](auto x, auto dy, auto*) { return dy / (1 + x * x); });
  activation(
      {.type = "erf",
       .doc = "Out = 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to X",
       .grad_of = GradOf::kX,
       .flags = kNone,
       .grad_lod = "X"},
      [](auto x, auto*) { return std::erf(x); },
      [](auto x, auto dy, auto*) { return dy * 2 * decltype(x)(std::numbers::inv_sqrtpi) * std::exp(-x * x); });
}

void declare_steps() {  // gradient zero wherever it exists
  const auto nothing = [](auto, auto dy, auto*) { return where(false, dy); };
  activation(
      {.type = "ceil", .doc = "Out = the least integer >= X", .grad_of = GradOf::kNeither},
      [](auto x, auto*) { return std::ceil(x); }, nothing);
  activation(
      {.type = "floor", .doc = "Out = the greatest integer <= X", .grad_of = GradOf::kNeither},
      [](auto x, auto*) { return std::floor(x); }, nothing);
  activation(
      {.type = "round", .doc = "Out = the integer nearest to X, halves away from zero", .grad_of = GradOf::kNeither},
      [](auto x, auto*) { return std::round(x); }, nothing);
}

void declare_rectifiers() {
  activation(
      {.type = "relu6",
       .doc = "Out = min(max(X, 0), threshold)",
       .source = "Krizhevsky, Convolutional deep belief networks, 2010",
       .grad_of = GradOf::kOut,
       .flags = kNone,
       .attrs = {{"threshold", 6.0f, "upper end"}}},
      [](auto x, auto* p) { return std::min(std::max(x, decltype(x)(0)), p[0]); },
      [](auto y, auto dy, auto* p) { return where(y > 0 && y < p[0], dy); });
  activation(
      {.type = "brelu",
       .doc = "Out = min(max(X, t_min), t_max)",
       .grad_of = GradOf::kX,
       .flags = kNone,
       .attrs = {{"t_min", 0.0f, "lower end"}, {"t_max", 24.0f, "upper end"}}},
      [](auto x, auto* p) { return std::min(std::max(x, p[0]), p[1]); },
      [](auto x, auto dy, auto* p) { return where(x > p[0] && x < p[1], dy); });
  activation(
      {.type = "leaky_relu",
       .doc = "Out = X where X > 0, else alpha X",
       .source = "Maas et al., ICML 2013",
       .grad_of = GradOf::kOut,
       .flags = kMkldnn,
       .attrs = {{"alpha", 0.02f, "slope for negative X"}}},
      [](auto x, auto* p) { return x > 0 ? x : p[0] * x; },
      [](auto y, auto dy, auto* p) { return y > 0 ? dy : p[0] * dy; });
  activation(
      {.type = "elu",
       .doc = "Out = X where X > 0, else alpha (e^X - 1)",
       .source = "Clevert et al., arXiv:1511.07289",
       .grad_of = GradOf::kX,
       .flags = kNone,
       .attrs = {{"alpha", 1.0f, "limit for large negative X, negated"}}},
      [](auto x, auto* p) { return x > 0 ? x : p[0] * std::expm1(x); },
      [](auto x, auto dy, auto* p) { return x > 0 ? dy : dy * p[0] * std::exp(x); });
  activation(
      {.type = "selu",
       .doc = "Out = scale X where X > 0, else scale alpha (e^X - 1)",
       .source = "Klambauer et al., arXiv:1706.02515",
       .grad_of = GradOf::kOut,
       .flags = kNone,
       .attrs = {{"scale", 1.0507009873554804934f, ""}, {"alpha", 1.6732632423543772848f, ""}},
       .grad_lod = ""},
      [](auto x, auto* p) { return p[0] * (x > 0 ? x : p[1] * std::expm1(x)); },
      [](auto y, auto dy, auto* p) { return y > 0 ? dy * p[0] : dy * (y + p[0] * p[1]); });
  activation(
      {.type = "thresholded_relu",
       .doc = "Out = X where X > threshold, else 0",
       .source = "Konda et al., arXiv:1402.3337",
       .grad_of = GradOf::kX,
       .flags = kNone,
       .attrs = {{"threshold", 1.0f, ""}}},
      [](auto x, auto* p) { return x > p[0] ? x : nothing_of(x); },
      [](auto x, auto dy, auto* p) { return where(x > p[0], dy); });
  activation(
      {.type = "hard_shrink",
       .doc = "Out = X where |X| > threshold, else 0",
       .grad_of = GradOf::kX,
       .flags = kNone,
       .attrs = {{"threshold", 0.5f, ""}}},
      [](auto x, auto* p) { return std::abs(x) > p[0] ? x : nothing_of(x); },
      [](auto x, auto dy, auto* p) { return where(std::abs(x) > p[0], dy); });
  activation(
      {.type = "softshrink",
       .doc = "Out = X moved towards 0 by lambda, 0 where it would pass it",
       .grad_of = GradOf::kX,
       .flags = kNone,
       .attrs = {{"lambda", 0.5f, ""}}},
      [](auto x, auto* p) { return x > p[0]    ? x - p[0]
                                   : x < -p[0] ? x + p[0]
                                               : nothing_of(x); },
      [](auto x, auto dy, auto* p) { return where(std::abs(x) > p[0], dy); });
}

void declare_gates() {
  activation(
      {.type = "softsign",
       .doc = "Out = X / (1 + |X|)",
       .source = "Glorot & Bengio, AISTATS 2010",
       .grad_of = GradOf::kX},
      [](auto x, auto*) { return x / (1 + std::abs(x)); },
      [](auto x, auto dy, auto*) { return dy / ((1 + std::abs(x)) * (1 + std::abs(x))); });
  activation(
      {.type = "swish",
       .doc = "Out = X / (1 + e^(-beta X))",
       .source = "Ramachandran et al., arXiv:1710.05941",
       .grad_of = GradOf::kX,
       .flags = kMkldnn,
       .attrs = {{"beta", 1.0f, ""}}},
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
       .flags = kNone,
       .attrs = {{"slope", 0.2f, ""}, {"offset", 0.5f, ""}}},
      [](auto x, auto* p) { return std::min(std::max(p[0] * x + p[1], decltype(x)(0)), decltype(x)(1)); },
      [](auto y, auto dy, auto* p) { return where(y > 0 && y < 1, dy * p[0]); });
  activation(
      {.type = "hard_swish",
       .doc = "Out = X min(max(X + offset, 0), threshold) / scale",
       .source = "Howard et al., arXiv:1905.02244",
       .grad_of = GradOf::kX,
       .flags = kNone,
       .attrs = {{"threshold", 6.0f, ""}, {"scale", 6.0f, ""}, {"offset", 3.0f, ""}}},
      [](auto x, auto* p) { return x * std::min(std::max(x + p[2], decltype(x)(0)), p[0]) / p[1]; },
      [](auto x, auto dy, auto* p) {
        if (x + p[2] <= 0) return where(false, dy);
        if (x + p[2] < p[0]) return dy * (2 * x + p[2]) / p[1];
        return anabranch::Flags::exact_fluid()
                   ? dy
                   : dy * p[0] / p[1];  // the original forgets the slope of the straight part
      });
  activation(
      {.type = "soft_relu",
       .doc = "Out = ln(1 + e^min(max(X, -threshold), threshold))",
       .grad_of = GradOf::kOut,
       .flags = kNone,
       .attrs = {{"threshold", 40.0f, "X is clipped to [-threshold, threshold]"}}},
      [](auto x, auto* p) { return softplus(std::min(std::max(x, -p[0]), p[0])); },
      [](auto y, auto dy, auto* p) { return where(y > -p[0] && y < p[0], -dy * std::expm1(-y)); });
}

AB_OPS(declare_exponentials);
AB_OPS(declare_powers_and_waves);
AB_OPS(declare_steps);
AB_OPS(declare_rectifiers);
AB_OPS(declare_gates);

}  // namespace
}  // namespace anabranch::math
