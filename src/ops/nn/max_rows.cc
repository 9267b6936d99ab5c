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

// Images are narrow: the tail of whole vectors uses shorter ones. fn(d, x) for each.
template <class Fn> HWY_INLINE void chunks(int64_t n, Fn&& fn) {
  int64_t x = 0;
  const auto with = [&](auto d) HWY_ATTR {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; x + lanes <= n; x += lanes) fn(d, x);
  };
  with(hn::ScalableTag<float>());
  with(hn::CappedTag<float, 8>());
  with(hn::CappedTag<float, 4>());
  with(hn::CappedTag<float, 2>());
  with(hn::CappedTag<float, 1>());
}

// Of all elements; n > 0.
float MaxOfLine(const float* in, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float each[HWY_MAX_BYTES / sizeof(float)];
  int64_t x = 0;
  float top = in[0];
  if (n >= 2 * lanes) {
    auto tops = hn::LoadU(d, in);
    for (x = lanes; x + lanes <= n; x += lanes) tops = larger(tops, hn::LoadU(d, in + x));
    hn::Store(tops, d, each);
    for (int64_t k = 0; k < lanes; ++k) top = larger(top, each[k]);
  }
  for (; x < n; ++x) top = larger(top, in[x]);
  return top;
}

void MaxOfRows(const float* const* rows, int count, float* out, int64_t n) {
  chunks(n, [=](auto d, int64_t x) HWY_ATTR {
    auto top = hn::Set(d, kLeast);
    for (int r = 0; r < count; ++r) top = larger(top, hn::LoadU(d, rows[r] + x));
    hn::StoreU(top, d, out + x);
  });
}

void MaxOfColumns(const float* in, int64_t width, int64_t stride, float* out, int64_t n) {
  if (n == 1) {
    out[0] = MaxOfLine(in, width);
  } else if (stride == 1) {
    chunks(n, [=](auto d, int64_t x) HWY_ATTR {
      auto top = hn::LoadU(d, in + x);
      for (int64_t k = 1; k < width; ++k) top = larger(top, hn::LoadU(d, in + x + k));
      hn::StoreU(top, d, out + x);
    });
  } else if (stride == 2) {
    chunks(n, [=](auto d, int64_t x) HWY_ATTR {
      hn::Vec<decltype(d)> top, even, odd;
      hn::LoadInterleaved2(d, in + 2 * x, top, odd);
      if (width > 1) top = larger(top, odd);
      for (int64_t k = 2; k < width; k += 2) {
        hn::LoadInterleaved2(d, in + 2 * x + k, even, odd);
        top = larger(top, even);
        if (k + 1 < width) top = larger(top, odd);
      }
      hn::StoreU(top, d, out + x);
    });
  } else {
    for (int64_t x = 0; x < n; ++x) out[x] = MaxOfLine(in + x * stride, width);
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
