#include "base/ceiling.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/ceiling.cc"
#include "hwy/foreach_target.h"
// foreach_target.h stands first: it includes this file once for every instruction set
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::ceiling {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Enough chains to hide the latency of a multiply-add (4 to 5 cycles, two per cycle) while fitting into sixteen
// registers.
constexpr int kChains = 12;

int64_t MultiplyAdds(int64_t rounds, float factor, float* out) {
  const hn::ScalableTag<float> d;
  const auto f = hn::Set(d, factor);
  const auto start = [&](float x) HWY_ATTR { return hn::Set(d, x); };  // equal chains would be merged by the compiler
  auto a0 = start(0), a1 = start(1), a2 = start(2), a3 = start(3), a4 = start(4), a5 = start(5), a6 = start(6),
       a7 = start(7), a8 = start(8), a9 = start(9), a10 = start(10), a11 = start(11);
  for (int64_t i = 0; i < rounds; ++i) {
    a0 = hn::MulAdd(a0, f, f);
    a1 = hn::MulAdd(a1, f, f);
    a2 = hn::MulAdd(a2, f, f);
    a3 = hn::MulAdd(a3, f, f);
    a4 = hn::MulAdd(a4, f, f);
    a5 = hn::MulAdd(a5, f, f);
    a6 = hn::MulAdd(a6, f, f);
    a7 = hn::MulAdd(a7, f, f);
    a8 = hn::MulAdd(a8, f, f);
    a9 = hn::MulAdd(a9, f, f);
    a10 = hn::MulAdd(a10, f, f);
    a11 = hn::MulAdd(a11, f, f);
  }
  const auto low = hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), hn::Add(a4, a5));
  const auto high = hn::Add(hn::Add(hn::Add(a6, a7), hn::Add(a8, a9)), hn::Add(a10, a11));
  *out = hn::GetLane(hn::SumOfLanes(d, hn::Add(low, high)));
  return 2 * kChains * rounds * static_cast<int64_t>(hn::Lanes(d));
}

void Triad(const float* b, const float* c, float s, float* a, size_t n) {
  const hn::ScalableTag<float> d;
  const auto scale = hn::Set(d, s);
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i + lanes <= n; i += lanes) {
    hn::Stream(hn::MulAdd(scale, hn::LoadU(d, c + i), hn::LoadU(d, b + i)), d, a + i);
  }
  hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::ceiling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch {
namespace ceiling {
HWY_EXPORT(MultiplyAdds);
HWY_EXPORT(Triad);
}  // namespace ceiling

namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double measure_flops() {
  volatile float factor = 0.5f;  // unknown to the compiler; the chains converge to 1
  float out = 0;
  double best = 0;
  for (int i = 0; i < 12; ++i) {  // the first rounds bring the core to its clock
    const auto begin = std::chrono::steady_clock::now();
    const int64_t flops = HWY_DYNAMIC_DISPATCH(ceiling::MultiplyAdds)(500'000, factor, &out);
    best = std::max(best, static_cast<double>(flops) / seconds_since(begin));
  }
  factor = out;
  return best;
}

double measure_bytes() {
  constexpr size_t kElems = size_t{8} << 20;  // 32 MB each
  std::vector<float> memory(3 * kElems + 64);
  float* a = memory.data();
  while (reinterpret_cast<uintptr_t>(a) % 64 != 0) ++a;
  const float *b = a + kElems, *c = b + kElems;
  double best = 0;
  for (int i = 0; i < 4; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    HWY_DYNAMIC_DISPATCH(ceiling::Triad)(b, c, 0.5f, a, kElems);
    best = std::max(best, 3.0 * sizeof(float) * kElems / seconds_since(begin));
  }
  return best;
}

}  // namespace

const Ceiling& core_ceiling() {
  static const Ceiling measured{measure_flops(), measure_bytes()};
  return measured;
}

}  // namespace anabranch
#endif  // HWY_ONCE
