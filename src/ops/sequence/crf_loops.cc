#include "ops/sequence/crf_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sequence/crf_loops.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"
#include "ops/sequence/gate_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::sequence::loops {
namespace HWY_NAMESPACE {

// Sums use several accumulators, so that an addition need not wait for the previous one.
template <int kVectors, int kSums>
HWY_INLINE void some_columns(const float* row, int64_t k, const float* w, int64_t ld, float* out) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kSums][kVectors];
#pragma GCC unroll 8
  for (int s = 0; s < kSums; ++s) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[s][v] = hn::Zero(d);
  }
  int64_t l = 0;
  for (; l + kSums <= k; l += kSums) {
#pragma GCC unroll 8
    for (int s = 0; s < kSums; ++s) {
      const V x = hn::Set(d, row[l + s]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sum[s][v] = hn::MulAdd(x, hn::LoadU(d, w + (l + s) * ld + v * lanes), sum[s][v]);
      }
    }
  }
  for (; l < k; ++l) {
    const V x = hn::Set(d, row[l]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[0][v] = hn::MulAdd(x, hn::LoadU(d, w + l * ld + v * lanes), sum[0][v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
    for (int s = 1; s < kSums; ++s) sum[0][v] = hn::Add(sum[0][v], sum[s][v]);
    hn::StoreU(sum[0][v], d, out + v * lanes);
  }
}

// out[ld] = row[k] w
HWY_INLINE void product(const float* row, int64_t k, const float* w, int64_t ld, float* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t j = 0;
  for (; j + 4 * lanes <= ld; j += 4 * lanes) some_columns<4, 2>(row, k, w + j, ld, out + j);
  for (; j + 2 * lanes <= ld; j += 2 * lanes) some_columns<2, 4>(row, k, w + j, ld, out + j);
  for (; j + lanes <= ld; j += lanes) some_columns<1, 4>(row, k, w + j, ld, out + j);
}

HWY_INLINE float total(V sum) { return hn::GetLane(hn::SumOfLanes(D(), sum)); }

template <class Fn> HWY_INLINE void each_part(int64_t n, Fn&& fn) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) fn(Part{d, i, n - i});
}

HWY_INLINE void scale(float factor, const float* from, int64_t n, float* to) {
  const V f = hn::Set(D(), factor);
  each_part(n, [&](const Part& at) HWY_ATTR { at.put(times(f, at.of(from)), to); });
}

float Forward(const CrfRows& c, const float* first, const float* last, float* alpha, float* sums) {
  const int64_t n = c.tags, ld = crf_width(n);
  for (int64_t t = 0; t < c.rows; ++t) {
    float* a = alpha + t * n;
    if (t > 0) product(a - n, n, c.weights, ld, c.scratch);
    const float* before = t > 0 ? c.scratch : first;
    V sum = hn::Zero(D());
    each_part(n, [&](const Part& at) HWY_ATTR {
      const V all = times(at.of(before), at.of(c.x_exps + t * n));
      sum = hn::Add(sum, all);
      at.put(all, a);
    });
    sums[t] = total(sum);
    scale(1.0f / sums[t], a, n, a);
  }
  V ends = hn::Zero(D());
  each_part(
      n, [&](const Part& at) HWY_ATTR { ends = hn::Add(ends, times(at.of(alpha + (c.rows - 1) * n), at.of(last))); });
  return total(ends);
}

void Backward(const CrfRows& c, const float* last, const float* alpha, float g, float* marginal, float* next,
              float* z) {
  const int64_t n = c.tags, ld = crf_width(n);
  float* shares = c.scratch + ld;
  const float* after = last;
  for (int64_t t = c.rows - 1; t >= 0; --t) {
    V sum = hn::Zero(D()), both = hn::Zero(D());
    each_part(n, [&](const Part& at) HWY_ATTR {
      const V beta = at.of(after), pair = times(beta, at.of(alpha + t * n));
      sum = hn::Add(sum, beta);
      both = hn::Add(both, pair);
      at.put(pair, marginal + t * n);
    });
    z[t] = total(both);
    scale(1.0f / z[t], marginal + t * n, n, marginal + t * n);
    if (t + 1 < c.rows) scale(g / z[t], next + (t + 1) * n, n, next + (t + 1) * n);
    if (t == 0) break;
    const V factor = hn::Set(D(), 1.0f / total(sum));
    each_part(n, [&](const Part& at)
                     HWY_ATTR { at.put(times(times(factor, at.of(after)), at.of(c.x_exps + t * n)), next + t * n); });
    product(next + t * n, n, c.weights, ld, shares);
    after = shares;
  }
  each_part(n, [&](const Part& at) HWY_ATTR { at.put(hn::Zero(D()), next); });
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::sequence::loops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::sequence::loops {

HWY_EXPORT(Forward);
HWY_EXPORT(Backward);

float crf_forward(const CrfRows& c, const float* first, const float* last, float* alpha, float* sums) {
  return HWY_DYNAMIC_DISPATCH(Forward)(c, first, last, alpha, sums);
}
void crf_backward(const CrfRows& c, const float* last, const float* alpha, float g, float* marginal, float* next,
                  float* z) {
  HWY_DYNAMIC_DISPATCH(Backward)(c, last, alpha, g, marginal, next, z);
}

}  // namespace anabranch::sequence::loops
#endif  // HWY_ONCE
