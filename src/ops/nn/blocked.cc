#include "ops/nn/blocked.h"

#include <dnnl.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/blocked.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"
#include "opdef/fused_ops.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::nn::blocked {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kParts = 4;  // independent partial sums: otherwise additions of one channel would wait for each other

// fn(pixel, lane, part): vectors of each pixel; the parts are added up in order at the end.
template <int64_t B, int kSums, class Fn> HWY_INLINE void reduce(int64_t n, float* const (&out)[kSums], Fn&& fn) {
  const hn::CappedTag<float, B> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t l = 0; l < B; l += lanes) {
    V part[kSums][kParts];
    for (auto& sums : part) {
      for (V& p : sums) p = hn::Zero(d);
    }
    int64_t i = 0;
    for (; i + kParts <= n; i += kParts) {
      for (int64_t k = 0; k < kParts; ++k)
        fn(d, (i + k) * B + l, l, [&](int s, V v) HWY_ATTR { part[s][k] = hn::Add(part[s][k], v); });
    }
    for (; i < n; ++i) fn(d, i * B + l, l, [&](int s, V v) HWY_ATTR { part[s][0] = hn::Add(part[s][0], v); });
    for (int s = 0; s < kSums; ++s) {
      const V left = hn::Add(part[s][0], part[s][1]), right = hn::Add(part[s][2], part[s][3]);
      hn::StoreU(hn::Add(left, right), d, out[s] + l);
    }
  }
}

template <int64_t B> void sum(const float* x, int64_t n, float* sums) {
  reduce<B, 1>(n, {sums}, [x](auto d, int64_t at, int64_t, auto&& add) HWY_ATTR { add(0, hn::LoadU(d, x + at)); });
}

template <int64_t B> void sum_squares(const float* x, const float* center, int64_t n, float* sums) {
  reduce<B, 1>(n, {sums}, [=](auto d, int64_t at, int64_t l, auto&& add) HWY_ATTR {
    const auto v = hn::Sub(hn::LoadU(d, x + at), hn::LoadU(d, center + l));
    add(0, hn::Mul(v, v));
  });
}

template <int64_t B>
void sum_products(const float* g, const float* x, const float* center, int64_t n, float* sum_g, float* sum_gx) {
  reduce<B, 2>(n, {sum_g, sum_gx}, [=](auto d, int64_t at, int64_t l, auto&& add) HWY_ATTR {
    const auto v = hn::LoadU(d, g + at);
    add(0, v);
    add(1, hn::Mul(v, hn::Sub(hn::LoadU(d, x + at), hn::LoadU(d, center + l))));
  });
}

template <int64_t B> void affine(const float* x, const float* factor, const float* offset, int64_t n, float* out) {
  const hn::CappedTag<float, B> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t l = 0; l < B; l += lanes) {
    const auto f = hn::LoadU(d, factor + l), o = hn::LoadU(d, offset + l);
    for (int64_t at = l; at < n * B; at += B) {
      hn::StoreU(hn::Add(hn::Mul(hn::LoadU(d, x + at), f), o), d, out + at);
    }
  }
}

template <int64_t B>
void combine(const float* g, const float* x, const float* a, const float* b, const float* c, int64_t n, float* out) {
  const hn::CappedTag<float, B> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t l = 0; l < B; l += lanes) {
    const auto va = hn::LoadU(d, a + l), vb = hn::LoadU(d, b + l), vc = hn::LoadU(d, c + l);
    for (int64_t at = l; at < n * B; at += B) {
      const auto left = hn::Mul(hn::LoadU(d, g + at), va), right = hn::Mul(hn::LoadU(d, x + at), vb);
      hn::StoreU(hn::Add(hn::Add(left, right), vc), d, out + at);
    }
  }
}

template <int64_t B> constexpr Loops kLoops = {sum<B>, sum_squares<B>, sum_products<B>, affine<B>, combine<B>};
const Loops* OfThisWidth() { return channel_block() == 16 ? &kLoops<16> : &kLoops<8>; }

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::nn::blocked
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::nn {

int64_t channel_block() {
  static const int64_t block = []() -> int64_t {
    switch (dnnl::get_effective_cpu_isa()) {
      case dnnl::cpu_isa::sse41:
      case dnnl::cpu_isa::avx:
      case dnnl::cpu_isa::avx2:
      case dnnl::cpu_isa::avx2_vnni: return 8;
      default: return fused::kMostInBlock;
    }
  }();
  return block;
}

namespace blocked {
HWY_EXPORT(OfThisWidth);
const Loops& loops() { return *HWY_DYNAMIC_DISPATCH(OfThisWidth)(); }
}  // namespace blocked

}  // namespace anabranch::nn
#endif
