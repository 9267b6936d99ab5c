#include "ops/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/simd.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "ops/kernels/simd_loop-inl.h"
#include "ops/kernels/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::simd {
namespace HWY_NAMESPACE {
HWY_INLINE V number(float x) { return hn::Set(D(), x); }

// A NaN is not below 0 and is kept; Max would return its other operand on some machines.
void Relu(const float* x, float* out, int64_t n) {
  loop(
      out, n, [](V v) HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(v, hn::Zero(D())), v); }, x);
}
void Square(const float* x, float* out, int64_t n) {
  loop(
      out, n, [](V v) HWY_ATTR { return hn::Mul(v, v); }, x);
}
void Sqrt(const float* x, float* out, int64_t n) {
  loop(
      out, n, [](V v) HWY_ATTR { return hn::Sqrt(v); }, x);
}

void Exp(const float* x, float* out, int64_t n) {
  loop(
      out, n, [](V v) HWY_ATTR { return exp_of(D(), v); }, x);
}

// log of 0 is -infinity, of a negative number NaN, of infinity infinity, as in C.
void Log(const float* x, float* out, int64_t n) {
  const V zero = hn::Zero(D()), inf = number(__builtin_inff()), nan = number(__builtin_nanf(""));
  loop(
      out, n,
      [=](V v) HWY_ATTR {
        const V y = hn::Log(D(), v);
        const V positive = hn::IfThenElse(hn::Lt(v, inf), y, v);
        return hn::IfThenElse(hn::Gt(v, zero), positive, hn::IfThenElse(hn::Eq(v, zero), hn::Neg(inf), nan));
      },
      x);
}

void Tanh(const float* x, float* out, int64_t n) {
  loop(
      out, n, [](V v) HWY_ATTR { return tanh_of(D(), v); }, x);
}

void Sigmoid(const float* x, float* out, int64_t n) {
  loop(
      out, n, [](V v) HWY_ATTR { return sigmoid_of(D(), v); }, x);
}

// Multiplication and addition round separately: the value is the same on machines with and without FMA.
void Affine(const float* x, float scale, float bias, float* out, int64_t n) {
  const V s = number(scale), b = number(bias);
  loop(
      out, n, [=](V v) HWY_ATTR { return hn::Add(hn::Mul(v, s), b); }, x);
}

void Shift(const float* x, float from, float least, float* out, int64_t n) {
  const V f = number(from), l = number(least);
  loop(
      out, n,
      [=](V v) HWY_ATTR {
        const V d = hn::Sub(v, f);
        return hn::IfThenElse(hn::Lt(d, l), l, d);
      },
      x);
}

void Add(const float* a, const float* b, float* out, int64_t n) {
  loop(
      out, n, [](V x, V y) HWY_ATTR { return hn::Add(x, y); }, a, b);
}
void Sub(const float* a, const float* b, float* out, int64_t n) {
  loop(
      out, n, [](V x, V y) HWY_ATTR { return hn::Sub(x, y); }, a, b);
}
void Mul(const float* a, const float* b, float* out, int64_t n) {
  loop(
      out, n, [](V x, V y) HWY_ATTR { return hn::Mul(x, y); }, a, b);
}
void Div(const float* a, const float* b, float* out, int64_t n) {
  loop(
      out, n, [](V x, V y) HWY_ATTR { return hn::Div(x, y); }, a, b);
}
void Max(const float* a, const float* b, float* out, int64_t n) {
  loop(
      out, n, [](V x, V y) HWY_ATTR { return hn::IfThenElse(hn::Gt(x, y), x, y); }, a, b);
}
void Min(const float* a, const float* b, float* out, int64_t n) {
  loop(
      out, n, [](V x, V y) HWY_ATTR { return hn::IfThenElse(hn::Lt(x, y), x, y); }, a, b);
}
void Axpy(float alpha, const float* x, float* y, int64_t n) {
  const V s = number(alpha);
  loop(
      y, n, [=](V v, V w) HWY_ATTR { return hn::Add(w, hn::Mul(v, s)); }, x, static_cast<const float*>(y));
}

void AddToRows(float* x, int64_t stride, const float* row, int64_t rows, int64_t n) {
  for (int64_t i = 0; i < rows; ++i) Add(x + i * stride, row, x + i * stride, n);
}

// A product, so that a NaN in the gradient propagates.
void ReluGrad(const float* y, const float* dy, float* dx, int64_t n) {
  loop(
      dx, n, [](V v, V g) HWY_ATTR { return hn::Mul(g, hn::IfThenElseZero(hn::Gt(v, hn::Zero(D())), number(1.0f))); },
      y, dy);
}
void SigmoidGrad(const float* y, const float* dy, float* dx, int64_t n) {
  loop(
      dx, n, [](V v, V g) HWY_ATTR { return hn::Mul(g, hn::Mul(v, hn::Sub(number(1.0f), v))); }, y, dy);
}
void TanhGrad(const float* y, const float* dy, float* dx, int64_t n) {
  loop(
      dx, n, [](V v, V g) HWY_ATTR { return hn::Mul(g, hn::Sub(number(1.0f), hn::Mul(v, v))); }, y, dy);
}

constexpr int64_t kPartials = 8;
using FoldTag = hn::CappedTag<float, kPartials>;
using OneTag = hn::CappedTag<float, 1>;

// Eight partial results, in as few vectors as they need: compilers would take an array of them apart and reassemble it
// for each vector. The tail is folded separately and joined last.
//   term(d, i): the numbers from i on, one per lane of d;  join(a, b): lane by lane
template <class Term, class Join> HWY_INLINE float fold(int64_t n, float start, Term&& term, Join&& join) {
  const FoldTag d;
  const OneTag one;
  constexpr int64_t kLanes = hn::MaxLanes(FoldTag()), kVectors = kPartials / kLanes;
  hn::Vec<FoldTag> part[kVectors];
  for (auto& p : part) p = hn::Set(d, start);
  int64_t i = 0;
  for (; i + kPartials <= n; i += kPartials) {
    for (int64_t k = 0; k < kVectors; ++k) part[k] = join(part[k], term(d, i + k * kLanes));
  }
  auto rest = hn::Set(one, start);
  for (; i < n; ++i) rest = join(rest, term(one, i));
  HWY_ALIGN float parts[kPartials];
  for (int64_t k = 0; k < kVectors; ++k) hn::Store(part[k], d, parts + k * kLanes);
  for (int64_t half = kPartials / 2; half > 0; half /= 2) {
    for (int64_t k = 0; k < half; ++k) {
      hn::Store(join(hn::Load(one, parts + k), hn::Load(one, parts + k + half)), one, parts + k);
    }
  }
  return hn::GetLane(join(rest, hn::Load(one, parts)));
}

// Blocks are summed in float32 and added up in double, so the error does not grow with n.
template <class Term> HWY_INLINE float total(int64_t n, Term&& term) {
  constexpr int64_t kBlock = 2048;
  double sum = 0.0;
  for (int64_t from = 0; from < n; from += kBlock) {
    sum += fold(
        n - from < kBlock ? n - from : kBlock, 0.0f, [=](auto d, int64_t i) HWY_ATTR { return term(d, from + i); },
        [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
  }
  return static_cast<float>(sum);
}

float Sum(const float* x, int64_t n) {
  return total(n, [=](auto d, int64_t i) HWY_ATTR { return hn::LoadU(d, x + i); });
}
float SumSquares(const float* x, int64_t n) {
  return total(n, [=](auto d, int64_t i) HWY_ATTR {
    const auto v = hn::LoadU(d, x + i);
    return hn::Mul(v, v);
  });
}
float Dot(const float* a, const float* b, int64_t n) {
  return total(n, [=](auto d, int64_t i) HWY_ATTR { return hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i)); });
}
float MaxOf(const float* x, int64_t n) {
  return fold(
      n, x[0], [=](auto d, int64_t i) HWY_ATTR { return hn::LoadU(d, x + i); },
      [](auto a, auto b) HWY_ATTR { return hn::IfThenElse(hn::Gt(a, b), a, b); });
}
const char* TargetName() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::simd {

#define AB_SIMD(function, Function, parameters, arguments) \
  HWY_EXPORT(Function);                                    \
  void function parameters { return HWY_DYNAMIC_DISPATCH(Function) arguments; }
#define AB_SIMD_UNARY(function, Function) \
  AB_SIMD(function, Function, (const float* x, float* out, int64_t n), (x, out, n))
#define AB_SIMD_BINARY(function, Function) \
  AB_SIMD(function, Function, (const float* a, const float* b, float* out, int64_t n), (a, b, out, n))
#define AB_SIMD_FOLD(function, Function, parameters, arguments) \
  HWY_EXPORT(Function);                                         \
  float function parameters { return HWY_DYNAMIC_DISPATCH(Function) arguments; }

AB_SIMD_UNARY(relu, Relu)
AB_SIMD_UNARY(square, Square)
AB_SIMD_UNARY(sqrt, Sqrt)
AB_SIMD_UNARY(exp, Exp)
AB_SIMD_UNARY(log, Log)
AB_SIMD_UNARY(tanh, Tanh)
AB_SIMD_UNARY(sigmoid, Sigmoid)
AB_SIMD(affine, Affine, (const float* x, float scale, float bias, float* out, int64_t n), (x, scale, bias, out, n))
AB_SIMD(shift, Shift, (const float* x, float from, float least, float* out, int64_t n), (x, from, least, out, n))
AB_SIMD_BINARY(add, Add)
AB_SIMD_BINARY(sub, Sub)
AB_SIMD_BINARY(mul, Mul)
AB_SIMD_BINARY(div, Div)
AB_SIMD_BINARY(max, Max)
AB_SIMD_BINARY(min, Min)
AB_SIMD(axpy, Axpy, (float alpha, const float* x, float* y, int64_t n), (alpha, x, y, n))
AB_SIMD(add_to_rows, AddToRows, (float* x, int64_t stride, const float* row, int64_t rows, int64_t n),
        (x, stride, row, rows, n))
AB_SIMD_BINARY(relu_grad, ReluGrad)
AB_SIMD_BINARY(sigmoid_grad, SigmoidGrad)
AB_SIMD_BINARY(tanh_grad, TanhGrad)
AB_SIMD_FOLD(sum, Sum, (const float* x, int64_t n), (x, n))
AB_SIMD_FOLD(sum_squares, SumSquares, (const float* x, int64_t n), (x, n))
AB_SIMD_FOLD(dot, Dot, (const float* a, const float* b, int64_t n), (a, b, n))
AB_SIMD_FOLD(max_of, MaxOf, (const float* x, int64_t n), (x, n))

HWY_EXPORT(TargetName);
const char* target_name() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }

}  // namespace anabranch::simd
#endif  // HWY_ONCE
