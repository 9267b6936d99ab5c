#include "ops/kernels/simd_functions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/simd_functions.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
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
AB_UNARY(Rsqrt, rsqrt_of(d, v))
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

// Far out, where the density is 0, v times it must be 0 for an infinite v, too.
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

// In double precision, e^(y ln x), which is exact to all digits of a float32 result. Special cases - bases that are not
// positive, results that are not normal - use the C library, number by number.
void Pow(const float* x, const float* y, float* out, int64_t n) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(dd));
  const auto part = [=](const float* a, const float* b, float* to) HWY_ATTR {
    const auto base = hn::LoadU(half, a), exponent = hn::LoadU(half, b),
               most = hn::Set(half, hwy::HighestValue<float>());
    const auto plain =
        hn::And(hn::And(hn::Gt(base, hn::Zero(half)), hn::Le(base, most)), hn::Le(hn::Abs(exponent), most));
    const auto safe = hn::PromoteTo(dd, hn::IfThenElse(plain, base, hn::Set(half, 1.0f)));
    const auto log = hn::Mul(hn::Log(dd, safe), hn::PromoteTo(dd, hn::IfThenElseZero(plain, exponent)));
    const auto e = hn::Exp(dd, hn::Max(hn::Min(log, hn::Set(dd, 120.0)), hn::Set(dd, -120.0)));
    HWY_ALIGN float made[HWY_MAX_BYTES / sizeof(double)];
    hn::Store(hn::DemoteTo(half, e), half, made);
    if (!hn::AllTrue(half, plain)) {
      for (int64_t k = 0; k < lanes; ++k) {
        if (!(a[k] > 0 && std::isfinite(a[k]) && std::isfinite(b[k]))) made[k] = std::pow(a[k], b[k]);
      }
    }
    hn::StoreU(hn::Load(half, made), half, to);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) part(x + i, y + i, out + i);
  if (i == n) return;
  HWY_ALIGN float a[HWY_MAX_BYTES / sizeof(double)], b[HWY_MAX_BYTES / sizeof(double)],
      c[HWY_MAX_BYTES / sizeof(double)];
  for (int64_t k = 0; k < lanes; ++k) a[k] = i + k < n ? x[i + k] : 1.0f, b[k] = i + k < n ? y[i + k] : 1.0f;
  part(a, b, c);
  for (int64_t k = 0; i + k < n; ++k) out[i + k] = c[k];
}

void LeakyRelu(const float* x, const float* p, float* out, int64_t n) {
  const D d;
  const V a = hn::Set(d, p[0]), zero = hn::Zero(d);
  if (p[0] > 1) {
    return loop(
        out, n, [=](V v) HWY_ATTR { return hn::IfThenElse(hn::Gt(v, zero), hn::Mul(a, v), v); }, x);
  }
  loop(
      out, n, [=](V v) HWY_ATTR { return hn::IfThenElse(hn::Gt(v, zero), v, hn::Mul(a, v)); }, x);
}
// Both thresholds count: with a negative threshold a number may be beyond both.
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
// tanh(ln(1 + e)) = n / (n + 2) with n = e (e + 2): 1 far before e^2 would overflow. Only a threshold low enough to
// clip takes the slow path.
void Mish(const float* x, const float* p, float* out, int64_t n) {
  const D d;
  constexpr float kFar = 20.0f;
  const V limit = hn::Set(d, p[0]), two = hn::Set(d, 2.0f), far = hn::Set(d, kFar);
  if (!(p[0] > 0) || p[0] >= kFar) {
    return loop(
        out, n,
        [=](V v) HWY_ATTR {
          const V e = exp_of(d, hn::Min(v, far)), m = hn::Mul(e, hn::Add(e, two));
          return keep_nan(d, v, hn::Mul(v, hn::Div(m, hn::Add(m, two))));
        },
        x);
  }
  loop(
      out, n,
      [=](V v) HWY_ATTR {
        const V beyond = hn::IfThenElse(hn::Gt(v, limit), v, exp_of(d, v));
        return hn::Mul(v, tanh_of(d, hn::IfThenElse(hn::Gt(hn::Abs(v), limit), beyond, softplus_of(d, v))));
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
AB_SIMD_BINARY(pow, Pow)
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
