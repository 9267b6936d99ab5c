// Functions of one float32 vector for the loops that Highway compiles once for every instruction set: simd.cc and loops
// that fuse several operations. Within 4 ulp of the exact value, tanh within 7; the same bits everywhere.
#if defined(ANABRANCH_SIMD_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ANABRANCH_SIMD_MATH_INL
#undef ANABRANCH_SIMD_MATH_INL
#else
#define ANABRANCH_SIMD_MATH_INL
#endif

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Highway's Exp takes any finite value; beyond these bounds the true float32 result is 0 or infinity.
template <class D, class V> HWY_INLINE V exp_of(D d, V x) {
  const V y = hn::Exp(d, hn::Min(hn::Max(x, hn::Set(d, -104.0f)), hn::Set(d, 88.7228f)));
  const V high = hn::IfThenElse(hn::Gt(x, hn::Set(d, 88.7228f)), hn::Set(d, hwy::HighestValue<float>() * 2.0f), y);
  return hn::IfThenElse(hn::Eq(x, x), high, x);
}
// x P(x^2) / Q(x^2), fitted to 2e-8 of tanh up to the bound beyond which it is 1; 6 ulp with rounding.
template <class D, class V> HWY_INLINE V tanh_of(D d, V x) {
  const V one = hn::Set(d, 1.0f), end = hn::Set(d, 9.02f);
  const V a = hn::Max(hn::Min(x, end), hn::Neg(end)), s = hn::Mul(a, a);
  V p = hn::Set(d, 1.33842161e-08f);
  for (const float c : {2.06357639e-05f, 0.00349745394f, 0.133826841f, 1.0f}) p = hn::MulAdd(p, s, hn::Set(d, c));
  V q = hn::Set(d, 7.79021719e-07f);
  for (const float c : {0.000328851136f, 0.0258843466f, 0.467160053f, 1.0f}) q = hn::MulAdd(q, s, hn::Set(d, c));
  const V y = hn::Mul(a, hn::Div(p, q));
  return hn::IfThenElse(hn::Eq(x, x), hn::Max(hn::Min(y, one), hn::Neg(one)), x);
}
template <class D, class V> HWY_INLINE V sigmoid_of(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, exp_of(d, hn::Neg(x))));
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::simd
HWY_AFTER_NAMESPACE();
#endif
