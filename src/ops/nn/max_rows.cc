#include "ops/nn/max_rows.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/max_rows.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::nn {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr float kLeast = std::numeric_limits<float>::lowest();  // of windows without larger elements: -infinity, too

template <class V> HWY_INLINE V larger(V top, V next) {
  return hn::IfThenElse(hn::Or(hn::Gt(next, top), hn::IsNaN(next)), next, top);
}

HWY_INLINE float larger(float top, float next) { return next > top || next != next ? next : top; }

// Images are narrow: the tail of whole vectors uses shorter ones. fn(d, x) for each, then one(x).
template <class Fn, class One> HWY_INLINE void chunks(int64_t n, Fn&& fn, One&& one) {
  int64_t x = 0;
  const auto with = [&](auto d) HWY_ATTR {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; x + lanes <= n; x += lanes) fn(d, x);
  };
  with(hn::ScalableTag<float>());
  with(hn::CappedTag<float, 8>());
  with(hn::CappedTag<float, 4>());
  for (; x < n; ++x) one(x);
}

void MaxOfRows(const float* const* rows, int count, float* out, int64_t n) {
  chunks(
      n,
      [=](auto d, int64_t x) HWY_ATTR {
        auto top = hn::Set(d, kLeast);
        for (int r = 0; r < count; ++r) top = larger(top, hn::LoadU(d, rows[r] + x));
        hn::StoreU(top, d, out + x);
      },
      [=](int64_t x) {
        float top = kLeast;
        for (int r = 0; r < count; ++r) top = larger(top, rows[r][x]);
        out[x] = top;
      });
}

void MaxOfColumns(const float* in, int64_t width, int64_t stride, float* out, int64_t n) {
  const auto one = [=](int64_t x) {
    float top = in[x * stride];
    for (int64_t k = 1; k < width; ++k) top = larger(top, in[x * stride + k]);
    out[x] = top;
  };
  if (stride == 1) {
    chunks(
        n,
        [=](auto d, int64_t x) HWY_ATTR {
          auto top = hn::LoadU(d, in + x);
          for (int64_t k = 1; k < width; ++k) top = larger(top, hn::LoadU(d, in + x + k));
          hn::StoreU(top, d, out + x);
        },
        one);
  } else if (stride == 2 && width == 2) {
    chunks(
        n,
        [=](auto d, int64_t x) HWY_ATTR {
          hn::Vec<decltype(d)> even, odd;
          hn::LoadInterleaved2(d, in + 2 * x, even, odd);
          hn::StoreU(larger(even, odd), d, out + x);
        },
        one);
  } else {
    for (int64_t x = 0; x < n; ++x) one(x);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::nn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::nn {
HWY_EXPORT(MaxOfRows);
HWY_EXPORT(MaxOfColumns);

void max_of_rows(const float* const* rows, int count, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(MaxOfRows)(rows, count, out, n);
}
void max_of_columns(const float* in, int64_t width, int64_t stride, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(MaxOfColumns)(in, width, stride, out, n);
}
}  // namespace anabranch::nn
#endif
