#include "ops/kernels/simd_functions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/simd_functions.cc"
#include "hwy/foreach_target.h"
// foreach_target.h stands first: it includes this file once for every instruction set
#include "hwy/highway.h"
#include "ops/kernels/simd_functions-inl.h"
#include "ops/kernels/simd_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::simd {
namespace HWY_NAMESPACE {

// Function(x, out, n) is `expression` of each vector v.
#define AB_UNARY(Function, expression)                        \
  void Function(const float* x, float* out, int64_t n) {      \
    const D d;                                                \
    loop(                                                     \
        out, n, [d](V v) HWY_ATTR { return expression; }, x); \
  }
#define AB_UNARY_GRAD(Function, expression)                                       \
  void Function(const float* x, const float* dy, float* dx, int64_t n) {          \
    const D d;                                                                    \
    loop(                                                                         \
        dx, n, [d](V v, V g) HWY_ATTR { return hn::Mul(g, expression); }, x, dy); \
  }

AB_UNARY(Abs, hn::Abs(v))
AB_UNARY(Ceil, hn::Ceil(v))
AB_UNARY(Floor, hn::Floor(v))
AB_UNARY(Round, round_half_away(d, v))
AB_UNARY(Reciprocal, hn::Div(hn::Set(d, 1.0f), v))
AB_UNARY(Rsqrt, hn::Div(hn::Set(d, 1.0f), hn::Sqrt(v)))
AB_UNARY(Log1p, log1p_of(d, v))
AB_UNARY(Expm1, expm1_of(d, v))
AB_UNARY(Sin, sin_of(d, v))
AB_UNARY(Cos, cos_of(d, v))
AB_UNARY(Acos, hn::IfThenElse(hn::Le(hn::Abs(v), hn::Set(d, 1.0f)), hn::Acos(d, v), hn::NaN(d)))
AB_UNARY(Asin, hn::IfThenElse(hn::Le(hn::Abs(v), hn::Set(d, 1.0f)), hn::Asin(d, v), hn::NaN(d)))
AB_UNARY(Atan, atan_of(d, v))
AB_UNARY(Erf, erf_of(d, v))
AB_UNARY(Softplus, softplus_of(d, v))
AB_UNARY(Logsigmoid, hn::Neg(softplus_of(d, hn::Neg(v))))
AB_UNARY(TanhShrink, hn::Sub(v, tanh_of(d, v)))
AB_UNARY(Gelu, hn::Mul(v, (Normal<D, V>(d, v).below)))

AB_UNARY_GRAD(SoftplusGrad, sigmoid_of(d, v))
AB_UNARY_GRAD(ErfGrad, hn::Mul(hn::Set(d, 1.1283791670955126f), exp_of(d, hn::Neg(hn::Mul(v, v)))))

// Far out, where the density is 0, v times it is 0, too, for an infinite v as well.
void GeluGrad(const float* x, const float* dy, float* dx, int64_t n) {
  const D d;
  loop(
      dx, n,
      [d](V v, V g) HWY_ATTR {
        const Normal<D, V> normal(d, v);
        const V near = hn::IfThenElse(hn::Gt(hn::Abs(v), hn::Set(d, 1e30f)), hn::Zero(d), v);
        return hn::Mul(g, hn::Add(normal.below, hn::Mul(near, normal.density)));
      },
      x, dy);
}

void LeakyRelu(const float* x, const float* p, float* out, int64_t n) {
  const D d;
  const V a = hn::Set(d, p[0]), zero = hn::Zero(d);
  loop(
      out, n, [=](V v) HWY_ATTR { return hn::IfThenElse(hn::Gt(v, zero), v, hn::Mul(a, v)); }, x);
}
// Both ends count: with a negative threshold a number may be beyond both.
void HardShrink(const float* x, const float* p, float* out, int64_t n) {
  const D d;
  const V high = hn::Set(d, p[0]), low = hn::Set(d, -p[0]), zero = hn::Zero(d);
  loop(
      out, n,
      [=](V v) HWY_ATTR {
        const auto above = hn::Gt(v, high), below = hn::Lt(v, low);
        const V once = hn::IfThenElse(hn::Or(above, below), v, keep_nan(d, v, zero));
        return hn::IfThenElse(hn::And(above, below), hn::Add(v, v), once);
      },
      x);
}
void Softshrink(const float* x, const float* p, float* out, int64_t n) {
  const D d;
  const V high = hn::Set(d, p[0]), low = hn::Set(d, -p[0]), zero = hn::Zero(d);
  loop(
      out, n,
      [=](V v) HWY_ATTR {
        const auto above = hn::Gt(v, high), below = hn::Lt(v, low);
        const V left = hn::IfThenElse(below, hn::Add(v, high), keep_nan(d, v, zero));
        const V right = hn::IfThenElse(below, hn::Add(v, v), hn::Sub(v, high));
        return hn::IfThenElse(above, right, left);
      },
      x);
}
void Stanh(const float* x, const float* p, float* out, int64_t n) {
  const D d;
  const V a = hn::Set(d, p[0]), b = hn::Set(d, p[1]);
  loop(
      out, n, [=](V v) HWY_ATTR { return hn::Mul(b, tanh_of(d, hn::Mul(a, v))); }, x);
}
void Elu(const float* x, const float* p, float* out, int64_t n) {
  const D d;
  const V a = hn::Set(d, p[0]);
  const auto negative = hn::Lt(a, hn::Zero(d));
  loop(
      out, n,
      [=](V v) HWY_ATTR {
        const V bent = hn::Mul(a, expm1_of(d, v)), up = hn::IfThenElse(negative, hn::Add(v, bent), v);
        const V down = hn::IfThenElse(negative, keep_nan(d, v, hn::Zero(d)), bent);
        return hn::IfThenElse(hn::Gt(v, hn::Zero(d)), up, down);
      },
      x);
}
void Selu(const float* x, const float* p, float* out, int64_t n) {
  const D d;
  const V scale = hn::Set(d, p[0]), a = hn::Set(d, p[1]);
  loop(
      out, n,
      [=](V v)
          HWY_ATTR { return hn::Mul(scale, hn::IfThenElse(hn::Gt(v, hn::Zero(d)), v, hn::Mul(a, expm1_of(d, v)))); },
      x);
}
void Swish(const float* x, const float* p, float* out, int64_t n) {
  const D d;
  const V b = hn::Set(d, p[0]);
  loop(
      out, n, [=](V v) HWY_ATTR { return hn::Mul(v, sigmoid_of(d, hn::Mul(b, v))); }, x);
}
void Mish(const float* x, const float* p, float* out, int64_t n) {
  const D d;
  const V limit = hn::Set(d, p[0]);
  const bool limited = p[0] > 0;
  loop(
      out, n,
      [=](V v) HWY_ATTR {
        V s = softplus_of(d, v);
        if (limited) {
          const V beyond = hn::IfThenElse(hn::Gt(v, limit), v, exp_of(d, v));
          s = hn::IfThenElse(hn::Gt(hn::Abs(v), limit), beyond, s);
        }
        return hn::Mul(v, tanh_of(d, s));
      },
      x);
}
void SoftRelu(const float* x, const float* p, float* out, int64_t n) {
  const D d;
  const V high = hn::Set(d, p[0]), low = hn::Set(d, -p[0]);
  loop(
      out, n, [=](V v) HWY_ATTR { return keep_nan(d, v, softplus_of(d, hn::Min(hn::Max(v, low), high))); }, x);
}
void TanhGelu(const float* x, const float* p, float* out, int64_t n) {
  const D d;
  const V scale = hn::Set(d, p[0]), cubic = hn::Set(d, p[1]), half = hn::Set(d, 0.5f), one = hn::Set(d, 1.0f);
  loop(
      out, n,
      [=](V v) HWY_ATTR {
        const V cube = hn::Mul(hn::Mul(cubic, v), hn::Mul(v, v));
        const V t = tanh_of(d, hn::Mul(scale, hn::Add(v, cube)));
        return hn::Mul(hn::Mul(v, half), hn::Add(one, t));
      },
      x);
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::simd {

#define AB_SIMD_UNARY(function, Function) \
  HWY_EXPORT(Function);                   \
  void function(const float* x, float* out, int64_t n) { HWY_DYNAMIC_DISPATCH(Function)(x, out, n); }
#define AB_SIMD_BINARY(function, Function) \
  HWY_EXPORT(Function);                    \
  void function(const float* x, const float* y, float* out, int64_t n) { HWY_DYNAMIC_DISPATCH(Function)(x, y, out, n); }

AB_SIMD_UNARY(abs, Abs)
AB_SIMD_UNARY(ceil, Ceil)
AB_SIMD_UNARY(floor, Floor)
AB_SIMD_UNARY(round, Round)
AB_SIMD_UNARY(reciprocal, Reciprocal)
AB_SIMD_UNARY(rsqrt, Rsqrt)
AB_SIMD_UNARY(log1p, Log1p)
AB_SIMD_UNARY(expm1, Expm1)
AB_SIMD_UNARY(sin, Sin)
AB_SIMD_UNARY(cos, Cos)
AB_SIMD_UNARY(acos, Acos)
AB_SIMD_UNARY(asin, Asin)
AB_SIMD_UNARY(atan, Atan)
AB_SIMD_UNARY(erf, Erf)
AB_SIMD_UNARY(softplus, Softplus)
AB_SIMD_UNARY(logsigmoid, Logsigmoid)
AB_SIMD_UNARY(tanh_shrink, TanhShrink)
AB_SIMD_UNARY(gelu, Gelu)
AB_SIMD_BINARY(gelu_grad, GeluGrad)
AB_SIMD_BINARY(softplus_grad, SoftplusGrad)
AB_SIMD_BINARY(erf_grad, ErfGrad)
AB_SIMD_BINARY(leaky_relu, LeakyRelu)
AB_SIMD_BINARY(hard_shrink, HardShrink)
AB_SIMD_BINARY(softshrink, Softshrink)
AB_SIMD_BINARY(stanh, Stanh)
AB_SIMD_BINARY(elu, Elu)
AB_SIMD_BINARY(selu, Selu)
AB_SIMD_BINARY(swish, Swish)
AB_SIMD_BINARY(mish, Mish)
AB_SIMD_BINARY(soft_relu, SoftRelu)
AB_SIMD_BINARY(tanh_gelu, TanhGelu)

}  // namespace anabranch::simd
#endif  // HWY_ONCE
