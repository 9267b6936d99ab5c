// Functions of one vector of float32 for the loops that Highway compiles once for every instruction set: simd.cc and
// loops that do several things in one pass. Within 4 ulp of the exact value; the same bits in all of them.
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

// Highway's Exp takes any finite value; beyond these ends the true float32 result is 0 or infinity.
template <class D, class V> HWY_INLINE V exp_of(D d, V x) {
  const V y = hn::Exp(d, hn::Min(hn::Max(x, hn::Set(d, -104.0f)), hn::Set(d, 88.7228f)));
  const V high = hn::IfThenElse(hn::Gt(x, hn::Set(d, 88.7228f)), hn::Set(d, hwy::HighestValue<float>() * 2.0f), y);
  return hn::IfThenElse(hn::Eq(x, x), high, x);
}
// Odd in x: computed of |x| by exp(-2|x|), which cannot overflow. Near 0, where 1 - e cancels, its series.
template <class D, class V> HWY_INLINE V tanh_of(D d, V x) {
  const V a = hn::Abs(x), one = hn::Set(d, 1.0f);
  const V e = exp_of(d, hn::Mul(a, hn::Set(d, -2.0f)));
  const V far = hn::Div(hn::Sub(one, e), hn::Add(one, e));
  const V s = hn::Mul(x, x);
  V p = hn::Set(d, -0.00886323552990219f);
  p = hn::Add(hn::Mul(p, s), hn::Set(d, 0.02186948853615520f));
  p = hn::Add(hn::Mul(p, s), hn::Set(d, -0.05396825396825397f));
  p = hn::Add(hn::Mul(p, s), hn::Set(d, 0.13333333333333333f));
  p = hn::Add(hn::Mul(p, s), hn::Set(d, -0.33333333333333333f));
  const V near = hn::Add(a, hn::Mul(a, hn::Mul(p, s)));
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.3f)), near, far), x);
}
template <class D, class V> HWY_INLINE V sigmoid_of(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, exp_of(d, hn::Neg(x))));
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::simd
HWY_AFTER_NAMESPACE();
#endif
