#include "ops/sequence/ctc_loops.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sequence/ctc_loops.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::sequence::loops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Below this exp is denormal and treated as 0.
template <class D, class V> HWY_INLINE V exp_of(D d, V x) {
  const V least = hn::Set(d, -708.0);
  const V y = hn::IfThenZeroElse(hn::Lt(x, least), hn::Exp(d, hn::Max(x, least)));
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

// Takes the largest of the three out of the logarithm, so that two exponentials are left.
template <class D> HWY_INLINE int64_t log_sums(D d, int64_t s, const LogSum& r, int64_t n) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto none = hn::Set(d, -std::numeric_limits<double>::infinity());
  for (; s + lanes <= n; s += lanes) {
    const auto a = hn::LoadU(d, r.a + s), b = hn::LoadU(d, r.b + s);
    const auto c = hn::Add(hn::LoadU(d, r.c + s), hn::LoadU(d, r.c_more + s));
    const auto high = hn::Max(a, b), low = hn::Min(a, b);
    const auto most = hn::Max(high, c), middle = hn::Max(low, hn::Min(high, c)), least = hn::Min(low, c);
    const auto others = hn::Add(exp_of(d, hn::Sub(middle, most)), exp_of(d, hn::Sub(least, most)));
    const auto sum = hn::IfThenElse(hn::Eq(most, none), none, hn::Add(most, hn::Log1p(d, others)));
    const auto all = hn::Add(a, hn::Add(b, c));
    const auto kept = hn::IfThenElse(hn::Eq(all, all), sum, all);
    hn::StoreU(hn::Add(hn::LoadU(d, r.add + s), kept), d, r.out + s);
  }
  return s;
}

void LogSums(const LogSum& row, int64_t n) {
  const int64_t s = log_sums(hn::ScalableTag<double>(), 0, row, n);
  log_sums(hn::CappedTag<double, 1>(), s, row, n);
}

template <class D>
HWY_INLINE int64_t shares(D d, int64_t s, const double* a, const double* b, double from, double* out, int64_t n) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; s + lanes <= n; s += lanes) {
    const auto sum = hn::Add(hn::LoadU(d, a + s), hn::LoadU(d, b + s));
    hn::StoreU(exp_of(d, hn::Sub(sum, hn::Set(d, from))), d, out + s);
  }
  return s;
}

void Shares(const double* a, const double* b, double from, double* out, int64_t n) {
  const int64_t s = shares(hn::ScalableTag<double>(), 0, a, b, from, out, n);
  shares(hn::CappedTag<double, 1>(), s, a, b, from, out, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::sequence::loops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::sequence::loops {

HWY_EXPORT(LogSums);
HWY_EXPORT(Shares);

void log_sum(const LogSum& row, int64_t n) { HWY_DYNAMIC_DISPATCH(LogSums)(row, n); }
void share(const double* a, const double* b, double from, double* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Shares)(a, b, from, out, n);
}

}  // namespace anabranch::sequence::loops
#endif  // HWY_ONCE
