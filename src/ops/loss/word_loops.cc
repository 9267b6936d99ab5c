#include "ops/loss/word_loops.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/loss/word_loops.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::loss {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most kPitch lanes: a vector never reaches beyond the padding.
template <class T> using Tag = hn::CappedTag<T, 64 / sizeof(T)>;

template <class D, class V> HWY_INLINE hn::TFromD<D> total(D d, V v) { return hn::GetLane(hn::SumOfLanes(d, v)); }

template <class T> HWY_INLINE void Scores(const T* x, const T* const* rows, int64_t count, int64_t n, T* out) {
  const Tag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t k = 0;
  for (; k + 3 <= count; k += 3) {
    auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d);
    for (int64_t j = 0; j < n; j += lanes) {
      const auto v = hn::LoadU(d, x + j);
      a = hn::MulAdd(v, hn::LoadU(d, rows[k] + j), a);
      b = hn::MulAdd(v, hn::LoadU(d, rows[k + 1] + j), b);
      c = hn::MulAdd(v, hn::LoadU(d, rows[k + 2] + j), c);
    }
    out[k] = total(d, a);
    out[k + 1] = total(d, b);
    out[k + 2] = total(d, c);
  }
  for (; k < count; ++k) {
    auto sum = hn::Zero(d);
    for (int64_t j = 0; j < n; j += lanes) sum = hn::MulAdd(hn::LoadU(d, x + j), hn::LoadU(d, rows[k] + j), sum);
    out[k] = total(d, sum);
  }
}

template <class T>
HWY_INLINE void Combine(const T* const* rows, const T* factors, int64_t stride, int64_t count, int64_t n, T* out) {
  const Tag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes) {
    auto a = hn::Zero(d), b = hn::Zero(d);
    for (int64_t k = 0; k < count; ++k) {
      const auto factor = hn::Set(d, factors[k * stride]);
      a = hn::MulAdd(factor, hn::LoadU(d, rows[k] + j), a);
      b = hn::MulAdd(factor, hn::LoadU(d, rows[k] + j + lanes), b);
    }
    hn::StoreU(a, d, out + j);
    hn::StoreU(b, d, out + j + lanes);
  }
  for (; j < n; j += lanes) {
    auto a = hn::Zero(d);
    for (int64_t k = 0; k < count; ++k) {
      a = hn::MulAdd(hn::Set(d, factors[k * stride]), hn::LoadU(d, rows[k] + j), a);
    }
    T last[kPitch];
    hn::StoreU(a, d, last);
    std::copy_n(last, std::min(lanes, n - j), out + j);
  }
}

void ScoresFloat(const float* x, const float* const* rows, int64_t count, int64_t n, float* out) {
  Scores(x, rows, count, n, out);
}
void ScoresDouble(const double* x, const double* const* rows, int64_t count, int64_t n, double* out) {
  Scores(x, rows, count, n, out);
}
void CombineFloat(const float* const* rows, const float* factors, int64_t stride, int64_t count, int64_t n,
                  float* out) {
  Combine(rows, factors, stride, count, n, out);
}
void CombineDouble(const double* const* rows, const double* factors, int64_t stride, int64_t count, int64_t n,
                   double* out) {
  Combine(rows, factors, stride, count, n, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::loss
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::loss {

HWY_EXPORT(ScoresFloat);
HWY_EXPORT(ScoresDouble);
HWY_EXPORT(CombineFloat);
HWY_EXPORT(CombineDouble);

template <> void scores(const float* x, const float* const* rows, int64_t count, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(ScoresFloat)(x, rows, count, n, out);
}
template <> void scores(const double* x, const double* const* rows, int64_t count, int64_t n, double* out) {
  HWY_DYNAMIC_DISPATCH(ScoresDouble)(x, rows, count, n, out);
}
template <>
void combine(const float* const* rows, const float* factors, int64_t stride, int64_t count, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(CombineFloat)(rows, factors, stride, count, n, out);
}
template <>
void combine(const double* const* rows, const double* factors, int64_t stride, int64_t count, int64_t n, double* out) {
  HWY_DYNAMIC_DISPATCH(CombineDouble)(rows, factors, stride, count, n, out);
}

}  // namespace anabranch::loss
#endif  // HWY_ONCE
