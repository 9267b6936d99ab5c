// Unary functions, elementwise: one row each. A row gives Out of X (and of the op's attributes p), X@GRAD of X or Out
// and of Out@GRAD, and, where there is one, the vector loop for float32.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/flags.h"
#include "ops/kernels/declare.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/simd.h"
#include "ops/kernels/tile_loops.h"
#include "ops/kernels/whole.h"

namespace anabranch {
namespace {

enum class GradOf { kX, kOut, kNeither };
enum Flags : unsigned { kNone = 0, kMkldnn = 1, kBoth = 3 };

struct FloatAttr {
  const char* name;
  float value;
  const char* doc;
};

struct Row {
  const char *type, *doc, *source;
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

void declare_attrs(OpDef& def, const Row& row) {
  for (const FloatAttr& a : row.attrs) def.attr<float>(a.name, a.value, a.doc);
  if (row.flags & kMkldnn) ignored_flags(def, {"use_mkldnn"});
  if (row.flags & ~kMkldnn) ignored_flags(def, {"use_cudnn"});
}

template <class Forward> void declare_forward_tile(const Row& row, Forward forward) {
  if (row.loop) {
    declare_tile(row.type, "X", kMathGrain, row.loop);
    return;
  }
  const auto make = [row, forward](const KernelArgs& op, const std::string&) -> TileLoop {
    return [x = op.in("X").first, params = Params<float>(row, op), forward](const float* const* in, float* out,
                                                                            int64_t n) {
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(forward(in[x][i], params.p));
    };
  };
  declare_tile(row.type, {make, kMathGrain});
}

template <class Forward> OpDef& declare_forward(const Row& row, Forward forward) {
  OpDef& def = declare_op(row.type, __FILE__);
  def.doc(row.doc).source(row.source).in("X", "[...] float").out("Out", "[...] as X").may_share("X", "Out");
  declare_attrs(def, row);
  def.infer([](InferContext& c) { c.same_as("Out", "X"); });
  def.grad([row](GradContext& g) {
    GradOp op = g.op(std::string(row.type) + "_grad");
    if (row.grad_of == GradOf::kX) op.in("X", g.in("X"));
    if (row.grad_of == GradOf::kOut) op.in("Out", g.out("Out"));
    op.in("Out@GRAD", g.dout("Out")).out("X@GRAD", g.din("X"));
  });
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
  declare_forward_tile(row, forward);
  return def;
}

template <class Backward>
void declare_backward_tile(const std::string& type, const char* from, const Row& row, Backward backward) {
  if (row.grad_loop) {
    declare_tile(type, from, "Out@GRAD", kMathGrain, row.grad_loop);
    return;
  }
  const auto make = [row, from, backward](const KernelArgs& op, const std::string&) -> TileLoop {
    return [v = op.in(from).first, dout = op.in("Out@GRAD").first, params = Params<float>(row, op), backward](
               const float* const* in, float* out, int64_t n) {
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(backward(in[v][i], in[dout][i], params.p));
    };
  };
  declare_tile(type, {make, kMathGrain});
}

template <class Backward> void declare_backward(const Row& row, Backward backward) {
  OpDef& def = declare_op((std::string(row.type) + "_grad").c_str(), __FILE__);
  const char* from = row.grad_of == GradOf::kX ? "X" : row.grad_of == GradOf::kOut ? "Out" : "Out@GRAD";
  def.doc(std::string("Gradient of ") + row.type + ".");
  if (row.grad_of != GradOf::kNeither) def.in(from, "[...] float");
  def.in("Out@GRAD", "[...] float").out("X@GRAD", "[...] as Out@GRAD").may_share("Out@GRAD", "X@GRAD");
  declare_attrs(def, row);
  def.infer([from, lod = row.grad_lod](InferContext& c) {
    check_same_shape(c, from, "Out@GRAD");
    grad_as(c, "X@GRAD", from, lod);
  });
  def.no_grad(kNoSecondOrder);
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
  declare_backward_tile(def.type(), from, row, backward);
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
      {"sigmoid", "Out = 1 / (1 + exp(-X))", "", GradOf::kOut, kBoth, {}, simd::sigmoid, simd::sigmoid_grad},
      [](auto x, auto*) { return sigmoid(x); }, [](auto y, auto dy, auto*) { return dy * y * (1 - y); });
  activation(
      {"tanh", "Out = tanh(X)", "", GradOf::kOut, kBoth, {}, simd::tanh, simd::tanh_grad},
      [](auto x, auto*) { return std::tanh(x); }, [](auto y, auto dy, auto*) { return dy * (1 - y * y); });
  of_integers(activation(
                  {"exp", "Out = e^X", "", GradOf::kOut, kBoth, {}, simd::exp, simd::mul},
                  [](auto x, auto*) { return std::exp(x); }, [](auto y, auto dy, auto*) { return dy * y; }),
              []<class T>(T x) { return whole<T>(std::exp(static_cast<double>(x))); });
  activation(
      {"log", "Out = ln(X)", "", GradOf::kX, kBoth, {}, simd::log}, [](auto x, auto*) { return std::log(x); },
      [](auto x, auto dy, auto*) { return dy / x; });
  activation(
      {"log1p", "Out = ln(1 + X)", "", GradOf::kX}, [](auto x, auto*) { return std::log1p(x); },
      [](auto x, auto dy, auto*) { return dy / (1 + x); });
  activation(
      {"mish",
       "Out = X tanh(ln(1 + e^X))",
       "Misra, BMVC 2020, arXiv:1908.08681",
       GradOf::kX,
       kNone,
       {{"threshold", 20.0f, "accepted, without effect: the logarithm is exact for every X"}},
       nullptr,
       nullptr,
       ""},
      [](auto x, auto*) { return x * std::tanh(softplus(x)); },
      [](auto x, auto dy, auto*) {
        const auto t = std::tanh(softplus(x));
        return dy * (t + x * (1 - t * t) * sigmoid(x));
      });
  activation(
      {"softplus", "Out = ln(1 + e^X)", "Dugas et al., NIPS 2000", GradOf::kX},
      [](auto x, auto*) { return softplus(x); }, [](auto x, auto dy, auto*) { return dy * sigmoid(x); });
  activation(
      {"logsigmoid", "Out = ln(1 / (1 + e^-X))", "", GradOf::kX}, [](auto x, auto*) { return -softplus(-x); },
      [](auto x, auto dy, auto*) { return dy * sigmoid(-x); });
  activation(
      {"tanh_shrink", "Out = X - tanh(X)", "", GradOf::kX}, [](auto x, auto*) { return x - std::tanh(x); },
      [](auto x, auto dy, auto*) {
        const auto t = std::tanh(x);
        return dy * t * t;
      });
  activation(
      {"stanh",
       "Out = scale_b tanh(scale_a X)",
       "LeCun et al., Efficient BackProp, 1998",
       GradOf::kX,
       kNone,
       {{"scale_a", 0.67f, "factor inside"}, {"scale_b", 1.7159f, "factor outside"}}},
      [](auto x, auto* p) { return p[1] * std::tanh(p[0] * x); },
      [](auto x, auto dy, auto* p) {
        const auto t = std::tanh(p[0] * x);
        return dy * p[0] * p[1] * (1 - t * t);
      });
}

void declare_powers_and_waves() {
  activation(
      {"sqrt", "Out = X^(1/2)", "", GradOf::kOut, kBoth, {}, simd::sqrt}, [](auto x, auto*) { return std::sqrt(x); },
      [](auto y, auto dy, auto*) { return dy / (2 * y); });
  activation(
      {"rsqrt", "Out = X^(-1/2)", "", GradOf::kOut}, [](auto x, auto*) { return 1 / std::sqrt(x); },
      [](auto y, auto dy, auto*) { return dy * y * y * y / -2; });
  of_integers(
      activation(
          {"square", "Out = X^2", "", GradOf::kX, kBoth, {}, simd::square}, [](auto x, auto*) { return x * x; },
          [](auto x, auto dy, auto*) { return dy * 2 * x; }),
      []<class T>(T x) {
        return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) * static_cast<std::make_unsigned_t<T>>(x));
      });
  activation(
      {"reciprocal", "Out = 1 / X", "", GradOf::kOut}, [](auto x, auto*) { return 1 / x; },
      [](auto y, auto dy, auto*) { return -dy * y * y; });
  of_integers(
      activation(
          {"abs", "Out = |X|", "", GradOf::kX}, [](auto x, auto*) { return std::abs(x); },
          [](auto x, auto dy, auto*) { return x < 0 ? -dy : where(x > 0, dy); }),
      []<class T>(T x) { return x < 0 ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x)) : x; });
  activation(
      {"sin", "Out = sin(X)", "", GradOf::kX}, [](auto x, auto*) { return std::sin(x); },
      [](auto x, auto dy, auto*) { return dy * std::cos(x); });
  activation(
      {"cos", "Out = cos(X)", "", GradOf::kX}, [](auto x, auto*) { return std::cos(x); },
      [](auto x, auto dy, auto*) { return -dy * std::sin(x); });
  activation(
      {"acos", "Out = arccos(X)", "", GradOf::kX, kNone}, [](auto x, auto*) { return std::acos(x); },
      [](auto x, auto dy, auto*) { return -dy / std::sqrt(1 - x * x); });
  activation(
      {"asin", "Out = arcsin(X)", "", GradOf::kX, kNone}, [](auto x, auto*) { return std::asin(x); },
      [](auto x, auto dy, auto*) { return dy / std::sqrt(1 - x * x); });
  activation(
      {"atan", "Out = arctan(X)", "", GradOf::kX, kNone}, [](auto x, auto*) { return std::atan(x); },
      [](auto x, auto dy, auto*) { return dy / (1 + x * x); });
  activation(
      {"erf",
       "Out = 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to X",
       "",
       GradOf::kX,
       kNone,
       {},
       nullptr,
       nullptr,
       "X"},
      [](auto x, auto*) { return std::erf(x); },
      [](auto x, auto dy, auto*) { return dy * 2 * decltype(x)(std::numbers::inv_sqrtpi) * std::exp(-x * x); });
}

void declare_steps() {  // gradient zero wherever it exists
  const auto nothing = [](auto, auto dy, auto*) { return where(false, dy); };
  activation(
      {"ceil", "Out = the least integer >= X", "", GradOf::kNeither}, [](auto x, auto*) { return std::ceil(x); },
      nothing);
  activation(
      {"floor", "Out = the greatest integer <= X", "", GradOf::kNeither}, [](auto x, auto*) { return std::floor(x); },
      nothing);
  activation(
      {"round", "Out = the integer nearest to X, halves away from zero", "", GradOf::kNeither},
      [](auto x, auto*) { return std::round(x); }, nothing);
}

void declare_rectifiers() {
  activation(
      {"relu6",
       "Out = min(max(X, 0), threshold)",
       "Krizhevsky, Convolutional deep belief networks, 2010",
       GradOf::kOut,
       kNone,
       {{"threshold", 6.0f, "upper end"}}},
      [](auto x, auto* p) { return std::min(std::max(x, decltype(x)(0)), p[0]); },
      [](auto y, auto dy, auto* p) { return where(y > 0 && y < p[0], dy); });
  activation(
      {"brelu",
       "Out = min(max(X, t_min), t_max)",
       "",
       GradOf::kX,
       kNone,
       {{"t_min", 0.0f, "lower end"}, {"t_max", 24.0f, "upper end"}}},
      [](auto x, auto* p) { return std::min(std::max(x, p[0]), p[1]); },
      [](auto x, auto dy, auto* p) { return where(x > p[0] && x < p[1], dy); });
  activation(
      {"leaky_relu",
       "Out = X where X > 0, else alpha X",
       "Maas et al., ICML 2013",
       GradOf::kOut,
       kMkldnn,
       {{"alpha", 0.02f, "slope for negative X"}}},
      [](auto x, auto* p) { return x > 0 ? x : p[0] * x; },
      [](auto y, auto dy, auto* p) { return y > 0 ? dy : p[0] * dy; });
  activation(
      {"elu",
       "Out = X where X > 0, else alpha (e^X - 1)",
       "Clevert et al., arXiv:1511.07289",
       GradOf::kX,
       kNone,
       {{"alpha", 1.0f, "limit for large negative X, negated"}}},
      [](auto x, auto* p) { return x > 0 ? x : p[0] * std::expm1(x); },
      [](auto x, auto dy, auto* p) { return x > 0 ? dy : dy * p[0] * std::exp(x); });
  activation(
      {"selu",
       "Out = scale X where X > 0, else scale alpha (e^X - 1)",
       "Klambauer et al., arXiv:1706.02515",
       GradOf::kOut,
       kNone,
       {{"scale", 1.0507009873554804934f, ""}, {"alpha", 1.6732632423543772848f, ""}},
       nullptr,
       nullptr,
       ""},
      [](auto x, auto* p) { return p[0] * (x > 0 ? x : p[1] * std::expm1(x)); },
      [](auto y, auto dy, auto* p) { return y > 0 ? dy * p[0] : dy * (y + p[0] * p[1]); });
  activation(
      {"thresholded_relu",
       "Out = X where X > threshold, else 0",
       "Konda et al., arXiv:1402.3337",
       GradOf::kX,
       kNone,
       {{"threshold", 1.0f, ""}}},
      [](auto x, auto* p) { return x > p[0] ? x : nothing_of(x); },
      [](auto x, auto dy, auto* p) { return where(x > p[0], dy); });
  activation(
      {"hard_shrink", "Out = X where |X| > threshold, else 0", "", GradOf::kX, kNone, {{"threshold", 0.5f, ""}}},
      [](auto x, auto* p) { return std::abs(x) > p[0] ? x : nothing_of(x); },
      [](auto x, auto dy, auto* p) { return where(std::abs(x) > p[0], dy); });
  activation(
      {"softshrink",
       "Out = X moved towards 0 by lambda, 0 where it would pass it",
       "",
       GradOf::kX,
       kNone,
       {{"lambda", 0.5f, ""}}},
      [](auto x, auto* p) { return x > p[0]    ? x - p[0]
                                   : x < -p[0] ? x + p[0]
                                               : nothing_of(x); },
      [](auto x, auto dy, auto* p) { return where(std::abs(x) > p[0], dy); });
}

void declare_gates() {
  activation(
      {"softsign", "Out = X / (1 + |X|)", "Glorot & Bengio, AISTATS 2010", GradOf::kX},
      [](auto x, auto*) { return x / (1 + std::abs(x)); },
      [](auto x, auto dy, auto*) { return dy / ((1 + std::abs(x)) * (1 + std::abs(x))); });
  activation(
      {"swish",
       "Out = X / (1 + e^(-beta X))",
       "Ramachandran et al., arXiv:1710.05941",
       GradOf::kX,
       kMkldnn,
       {{"beta", 1.0f, ""}}},
      [](auto x, auto* p) { return x * sigmoid(p[0] * x); },
      [](auto x, auto dy, auto* p) {
        const auto s = sigmoid(p[0] * x);
        return dy * (s + p[0] * x * s * (1 - s));
      });
  activation(
      {"hard_sigmoid",
       "Out = min(max(slope X + offset, 0), 1)",
       "Gulcehre et al., arXiv:1603.00391",
       GradOf::kOut,
       kNone,
       {{"slope", 0.2f, ""}, {"offset", 0.5f, ""}}},
      [](auto x, auto* p) { return std::min(std::max(p[0] * x + p[1], decltype(x)(0)), decltype(x)(1)); },
      [](auto y, auto dy, auto* p) { return where(y > 0 && y < 1, dy * p[0]); });
  activation(
      {"hard_swish",
       "Out = X min(max(X + offset, 0), threshold) / scale",
       "Howard et al., arXiv:1905.02244",
       GradOf::kX,
       kNone,
       {{"threshold", 6.0f, ""}, {"scale", 6.0f, ""}, {"offset", 3.0f, ""}}},
      [](auto x, auto* p) { return x * std::min(std::max(x + p[2], decltype(x)(0)), p[0]) / p[1]; },
      [](auto x, auto dy, auto* p) {
        if (x + p[2] <= 0) return where(false, dy);
        if (x + p[2] < p[0]) return dy * (2 * x + p[2]) / p[1];
        return anabranch::Flags::exact_fluid()
                   ? dy
                   : dy * p[0] / p[1];  // the original forgets the slope of the straight part
      });
  activation(
      {"soft_relu",
       "Out = ln(1 + e^min(max(X, -threshold), threshold))",
       "",
       GradOf::kOut,
       kNone,
       {{"threshold", 40.0f, "X is clipped to [-threshold, threshold]"}}},
      [](auto x, auto* p) { return softplus(std::min(std::max(x, -p[0]), p[0])); },
      [](auto y, auto dy, auto* p) { return where(y > -p[0] && y < p[0], -dy * std::expm1(-y)); });
}

[[maybe_unused]] const bool declared =
    (declare_exponentials(), declare_powers_and_waves(), declare_steps(), declare_rectifiers(), declare_gates(), true);

}  // namespace
}  // namespace anabranch
