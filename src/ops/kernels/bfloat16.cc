#include "ops/kernels/bfloat16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/bfloat16.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::as_bfloat16 {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The upper 16 bits, after adding just under half of the lower ones, plus the lowest kept bit for ties.
void Round(const float* x, int64_t n, uint16_t* out) {
  const hn::ScalableTag<uint32_t> d;
  const hn::Rebind<uint16_t, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto low = hn::Set(d, 0x7fff), one = hn::Set(d, 1), quiet = hn::Set(d, 0x400000);
  const auto infinity = hn::Set(d, 0x7f800000), magnitude = hn::Set(d, 0x7fffffff);
  const auto round = [&](auto bits) HWY_ATTR {
    const auto up = hn::Add(bits, hn::Add(low, hn::And(hn::ShiftRight<16>(bits), one)));
    const auto nan = hn::Gt(hn::And(bits, magnitude), infinity);
    return hn::ShiftRight<16>(hn::IfThenElse(nan, hn::Or(bits, quiet), up));
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto bits = hn::LoadU(d, reinterpret_cast<const uint32_t*>(x) + i);
    hn::StoreU(hn::TruncateTo(half, round(bits)), half, out + i);
  }
  const hn::CappedTag<uint32_t, 1> d1;
  for (; i < n; ++i) {
    uint32_t bits = hn::GetLane(hn::LoadU(d1, reinterpret_cast<const uint32_t*>(x) + i));
    const bool nan = (bits & 0x7fffffff) > 0x7f800000;
    bits = nan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1);
    out[i] = static_cast<uint16_t>(bits >> 16);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::as_bfloat16
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch {
namespace as_bfloat16 {
HWY_EXPORT(Round);
void round(const float* x, int64_t n, uint16_t* out) { HWY_DYNAMIC_DISPATCH(Round)(x, n, out); }
}  // namespace as_bfloat16

void round_to_bfloat16(const KernelContext& c, const float* x, int64_t n, std::vector<uint16_t>& out) {
  if (static_cast<int64_t>(out.size()) < n) out.resize(static_cast<size_t>(n));
  constexpr int64_t kGrain = 1 << 16;
  c.parallel_for(n, kGrain,
                 [&](int64_t begin, int64_t end) { as_bfloat16::round(x + begin, end - begin, out.data() + begin); });
}

}  // namespace anabranch
#endif
