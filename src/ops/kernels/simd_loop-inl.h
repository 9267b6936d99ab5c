// The loop over vectors of float32 that simd.cc and simd_functions.cc compile once for every instruction set.
#if defined(ANABRANCH_SIMD_LOOP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ANABRANCH_SIMD_LOOP_INL
#undef ANABRANCH_SIMD_LOOP_INL
#else
#define ANABRANCH_SIMD_LOOP_INL
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// The tail goes through a padded vector and the same function as the body: the value of an element does not depend on
// its position. Pads with 1 because every function here is defined there.
template <class Fn, class... Arrays> HWY_INLINE void loop(float* out, int64_t n, Fn&& fn, const Arrays*... in) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(fn(hn::LoadU(d, in + i)...), d, out + i);
  if (i == n) return;
  const auto padded = [&](const float* from) HWY_ATTR {
    HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)];
    for (int64_t k = 0; k < lanes; ++k) buffer[k] = i + k < n ? from[i + k] : 1.0f;
    return hn::Load(d, buffer);
  };
  HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(fn(padded(in)...), d, buffer);
  for (int64_t k = 0; i + k < n; ++k) out[i + k] = buffer[k];
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::simd
HWY_AFTER_NAMESPACE();
#endif
