// The formulas of update rules for vectors, which Highway compiles once for every instruction set:
// rules::HWY_NAMESPACE::step(rule, g, p, state...) for Wide<D>.
#if defined(ANABRANCH_RULE_VECTORS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ANABRANCH_RULE_VECTORS_INL
#undef ANABRANCH_RULE_VECTORS_INL
#else
#define ANABRANCH_RULE_VECTORS_INL
#endif
#include <cmath>
#include <type_traits>

#include "hwy/highway.h"
#include "sparse/update_rules.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::rules {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A vector with the operators of numbers, and numbers as vectors.
template <class D> struct Wide {
  using Test = hn::Mask<D>;
  hn::Vec<D> v;
  HWY_INLINE Wide(hn::Vec<D> of) : v(of) {}                 // NOLINT(google-explicit-constructor)
  HWY_INLINE Wide(hn::TFromD<D> x) : v(hn::Set(D(), x)) {}  // NOLINT(google-explicit-constructor)
  HWY_INLINE Wide operator-() const { return hn::Neg(v); }
  friend HWY_INLINE Wide operator+(Wide a, Wide b) { return hn::Add(a.v, b.v); }
  friend HWY_INLINE Wide operator-(Wide a, Wide b) { return hn::Sub(a.v, b.v); }
  friend HWY_INLINE Wide operator*(Wide a, Wide b) { return hn::Mul(a.v, b.v); }
  friend HWY_INLINE Wide operator/(Wide a, Wide b) { return hn::Div(a.v, b.v); }
  friend HWY_INLINE Test operator<(Wide a, Wide b) { return hn::Lt(a.v, b.v); }
  friend HWY_INLINE Test operator>(Wide a, Wide b) { return hn::Gt(a.v, b.v); }
  friend HWY_INLINE Wide sqrt(Wide x) { return hn::Sqrt(x.v); }
  friend HWY_INLINE Wide pow(Wide x, hn::TFromD<D> exponent) {  // rarely used: one number after another
    HWY_ALIGN hn::TFromD<D> numbers[hn::MaxLanes(D())];
    hn::Store(x.v, D(), numbers);
    for (size_t i = 0; i < hn::Lanes(D()); ++i) numbers[i] = std::pow(numbers[i], exponent);
    return hn::Load(D(), numbers);
  }
  friend HWY_INLINE Wide abs(Wide x) { return hn::Abs(x.v); }
  friend HWY_INLINE Wide max(Wide a, Wide b) { return pick(a < b, b, a); }
  friend HWY_INLINE Wide pick(Test test, Wide a, Wide b) { return hn::IfThenElse(test, a.v, b.v); }
};

#define AB_RULE_FN HWY_INLINE
#include "sparse/update_formulas-inl.h"
#undef AB_RULE_FN

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::rules
HWY_AFTER_NAMESPACE();
#endif
