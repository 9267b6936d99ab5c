// Further functions of one float32 vector, for simd_functions.cc and for loops that fuse several operations.
#if defined(ANABRANCH_SIMD_FUNCTIONS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ANABRANCH_SIMD_FUNCTIONS_INL
#undef ANABRANCH_SIMD_FUNCTIONS_INL
#else
#define ANABRANCH_SIMD_FUNCTIONS_INL
#endif

#include <cmath>

#include "ops/kernels/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// y where x is not NaN, else x.
template <class D, class V> HWY_INLINE V keep_nan(D, V x, V y) { return hn::IfThenElse(hn::Eq(x, x), y, x); }

// The nearest integer, halves away from zero, like std::round.
template <class D, class V> HWY_INLINE V round_half_away(D d, V x) {
  const V cut = hn::Trunc(x), rest = hn::Sub(x, cut), one = hn::Set(d, 1.0f);  // exact
  const V up = hn::IfThenElseZero(hn::Ge(rest, hn::Set(d, 0.5f)), one);
  const V down = hn::IfThenElseZero(hn::Le(rest, hn::Set(d, -0.5f)), one);
  return hn::CopySign(hn::Add(cut, hn::Sub(up, down)), x);
}

// Newton's steps from a guess by the exponent: a square root and a division would take twice the time. The result is
// within 2 ulp and, without fused operations, the same on all machines. Zeros, denormals, infinities and negative
// numbers use the slow path.
template <class D, class V> HWY_INLINE V rsqrt_of(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto plain = hn::And(hn::Ge(x, hn::Set(d, 1.17549435e-38f)), hn::Lt(x, hn::Inf(d)));
  V y = hn::BitCast(d, hn::Sub(hn::Set(di, 0x5f375a86), hn::ShiftRight<1>(hn::BitCast(di, x))));
  const V half = hn::Mul(x, hn::Set(d, 0.5f)), most = hn::Set(d, 1.5f);
  for (int i = 0; i < 3; ++i) y = hn::Mul(y, hn::Sub(most, hn::Mul(hn::Mul(half, y), y)));
  if (HWY_LIKELY(hn::AllTrue(d, plain))) return y;
  return hn::IfThenElse(plain, y, hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x)));
}

// As in C: -infinity at -1, NaN below, infinity at infinity.
template <class D, class V> HWY_INLINE V log1p_of(D d, V x) {
  const V low = hn::Set(d, -1.0f), inf = hn::Inf(d);
  const V inside = hn::IfThenElse(hn::Lt(x, inf), hn::Log1p(d, x), x);
  return hn::IfThenElse(hn::Gt(x, low), inside, hn::IfThenElse(hn::Eq(x, low), hn::Neg(inf), hn::NaN(d)));
}
template <class D, class V> HWY_INLINE V expm1_of(D d, V x) {
  const V top = hn::Set(d, 88.7228f);
  const V y = hn::Expm1(d, hn::Min(hn::Max(x, hn::Set(d, -104.0f)), top));
  return keep_nan(d, x, hn::IfThenElse(hn::Gt(x, top), hn::Inf(d), y));
}
// max(x, 0) + ln(1 + e^-|x|), which cannot overflow.
template <class D, class V> HWY_INLINE V softplus_of(D d, V x) {
  const V rest = hn::Log1p(d, exp_of(d, hn::Neg(hn::Abs(x))));
  return keep_nan(d, x, hn::Add(hn::Max(x, hn::Zero(d)), rest));
}

// Highway's sine and cosine are accurate up to 39000 half periods or so; the few vectors beyond use the C library.
inline constexpr float kFarWave = 30000.0f;
template <class D, class V, class Near, class Far> HWY_INLINE V wave_of(D d, V x, Near&& near, Far&& far) {
  if (HWY_LIKELY(hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, kFarWave))))) return near(x);
  HWY_ALIGN float each[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, d, each);
  for (size_t i = 0; i < hn::Lanes(d); ++i) each[i] = far(each[i]);
  return hn::Load(d, each);
}
template <class D, class V> HWY_INLINE V sin_of(D d, V x) {
  return wave_of(
      d, x, [d](V v) HWY_ATTR { return hn::Sin(d, v); }, [](float v) { return std::sin(v); });
}
template <class D, class V> HWY_INLINE V cos_of(D d, V x) {
  return wave_of(
      d, x, [d](V v) HWY_ATTR { return hn::Cos(d, v); }, [](float v) { return std::cos(v); });
}
template <class D, class V> HWY_INLINE V atan_of(D d, V x) {
  return keep_nan(d, x, hn::CopySign(hn::Atan(d, hn::Min(hn::Abs(x), hn::Set(d, 1e30f))), x));
}

// e^(-a^2) and e^(a^2) (1 - erf(a)) for a >= 0. The second is u P(u), u = 1 / (1 + a / 2), with P fitted by Chebyshev
// polynomials to 3e-8.
template <class D, class V> struct NormalTail {
  V bell, tail;
  HWY_INLINE NormalTail(D d, V a) {
    const V u = hn::Div(hn::Set(d, 1.0f), hn::Add(hn::Set(d, 1.0f), hn::Mul(a, hn::Set(d, 0.5f))));
    V p = hn::Set(d, 0.012931548058986664f);
    for (const float c :
         {-0.12639497220516205f, 0.4353974759578705f, -0.6774035096168518f, 0.4263704717159271f, -0.10050053149461746f,
          0.2261124551296234f, 0.23855938017368317f, 0.2828633487224579f, 0.2820643484592438f}) {
      p = hn::Add(hn::Mul(p, u), hn::Set(d, c));
    }
    bell = exp_of(d, hn::Neg(hn::Mul(a, a)));
    tail = hn::Mul(p, u);
  }
};

// Odd: below 1 its series in x^2, fitted to 2e-9; above, 1 minus its tail.
template <class D, class V> HWY_INLINE V erf_of(D d, V x) {
  const V a = hn::Abs(x), one = hn::Set(d, 1.0f), s = hn::Mul(x, x);
  V p = hn::Set(d, 7.847259257687256e-05f);
  for (const float c : {-0.0008008189033716917f, 0.005188099108636379f, -0.026853691786527634f, 0.1128358244895935f,
                        -0.3761262595653534f, 1.1283791065216064f}) {
    p = hn::Add(hn::Mul(p, s), hn::Set(d, c));
  }
  const NormalTail<D, V> t(d, a);
  const V far = hn::CopySign(hn::Sub(one, hn::Mul(t.bell, t.tail)), x);
  return keep_nan(d, x, hn::IfThenElse(hn::Lt(a, one), hn::Mul(x, p), far));
}

// P(Z <= x) of a standard normal Z, and its density.
template <class D, class V> struct Normal {
  V below, density;
  HWY_INLINE Normal(D d, V x) {
    const NormalTail<D, V> t(d, hn::Mul(hn::Abs(x), hn::Set(d, 0.70710678118654752f)));
    const V half = hn::Mul(hn::Set(d, 0.5f), hn::Mul(t.bell, t.tail));
    below = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), half, hn::Sub(hn::Set(d, 1.0f), half));
    density = hn::Mul(t.bell, hn::Set(d, 0.39894228040143268f));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::simd
HWY_AFTER_NAMESPACE();
#endif
