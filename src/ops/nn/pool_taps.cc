#include "ops/nn/pool_taps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/pool_taps.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::nn {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, kPoolLanes>;
using DI = hn::RebindToSigned<D>;

template <class Fn> HWY_INLINE void each_vector(int64_t n, Fn&& fn) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t x = 0; x < n; x += lanes) fn(x);
}

void SplitPhases(const float* row, int64_t n, int64_t stride, int64_t phase_elems, float* to) {
  int64_t done = 0;
  if (stride == 2) {
    const D d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; done + 2 * lanes <= n; done += 2 * lanes) {
      hn::Vec<D> even, odd;
      hn::LoadInterleaved2(d, row + done, even, odd);
      hn::StoreU(even, d, to + done / 2);
      hn::StoreU(odd, d, to + phase_elems + done / 2);
    }
  }
  for (int64_t k = 0; k < stride; ++k) {
    float* phase = to + k * phase_elems + done / stride;
    for (int64_t i = done + k; i < n; i += stride) *phase++ = row[i];
  }
}

void JoinPhases(const float* from, int64_t n, int64_t stride, int64_t phase_elems, float* row) {
  int64_t done = 0;
  if (stride == 2) {
    const D d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; done + 2 * lanes <= n; done += 2 * lanes) {
      hn::StoreInterleaved2(hn::LoadU(d, from + done / 2), hn::LoadU(d, from + phase_elems + done / 2), d, row + done);
    }
  }
  for (int64_t k = 0; k < stride; ++k) {
    const float* phase = from + k * phase_elems + done / stride;
    for (int64_t i = done + k; i < n; i += stride) row[i] = *phase++;
  }
}

void FirstEqual(const float* const* taps, const int32_t* places, int count, const float* top, int32_t* found,
                int64_t n) {
  const D d;
  const DI di;
  each_vector(n, [=](int64_t x) HWY_ATTR {
    const auto top_values = hn::LoadU(d, top + x);
    auto at = hn::Set(di, -1);
    for (int t = count - 1; t >= 0; --t) {
      const auto equal = hn::RebindMask(di, hn::Eq(hn::LoadU(d, taps[t] + x), top_values));
      at = hn::IfThenElse(equal, hn::Set(di, places[t]), at);
    }
    hn::StoreU(at, di, found + x);
  });
}

void MeanOfTaps(const float* const* taps, int count, const float* divisors, float* out, int64_t n) {
  const D d;
  each_vector(n, [=](int64_t x) HWY_ATTR {
    auto sum = hn::Zero(d);
    for (int t = 0; t < count; ++t) sum = hn::Add(sum, hn::LoadU(d, taps[t] + x));
    hn::StoreU(hn::Div(sum, hn::LoadU(d, divisors + x)), d, out + x);
  });
}

void AddToTaps(const float* dout, const float* divisors, float* share, float* const* taps, int count, int64_t n) {
  const D d;
  each_vector(n, [=](int64_t x) HWY_ATTR {
    hn::StoreU(hn::Div(hn::LoadU(d, dout + x), hn::LoadU(d, divisors + x)), d, share + x);
  });
  for (int t = 0; t < count; ++t) {
    float* tap = taps[t];
    each_vector(n, [=](int64_t x)
                       HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(d, tap + x), hn::LoadU(d, share + x)), d, tap + x); });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::nn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::nn {
HWY_EXPORT(SplitPhases);
HWY_EXPORT(JoinPhases);
HWY_EXPORT(FirstEqual);
HWY_EXPORT(MeanOfTaps);
HWY_EXPORT(AddToTaps);

void split_phases(const float* row, int64_t n, int64_t stride, int64_t phase_elems, float* to) {
  HWY_DYNAMIC_DISPATCH(SplitPhases)(row, n, stride, phase_elems, to);
}
void join_phases(const float* from, int64_t n, int64_t stride, int64_t phase_elems, float* row) {
  HWY_DYNAMIC_DISPATCH(JoinPhases)(from, n, stride, phase_elems, row);
}
void first_equal(const float* const* taps, const int32_t* places, int count, const float* top, int32_t* found,
                 int64_t n) {
  HWY_DYNAMIC_DISPATCH(FirstEqual)(taps, places, count, top, found, n);
}
void mean_of_taps(const float* const* taps, int count, const float* divisors, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(MeanOfTaps)(taps, count, divisors, out, n);
}
void add_to_taps(const float* dout, const float* divisors, float* share, float* const* taps, int count, int64_t n) {
  HWY_DYNAMIC_DISPATCH(AddToTaps)(dout, divisors, share, taps, count, n);
}
}  // namespace anabranch::nn
#endif
