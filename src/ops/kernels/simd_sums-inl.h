// Sums of float32 in the widest vectors of the machine, in sixteen partial sums for every width, like sums.h: the same
// bits on every machine.
#if defined(ANABRANCH_SIMD_SUMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ANABRANCH_SIMD_SUMS_INL
#undef ANABRANCH_SIMD_SUMS_INL
#else
#define ANABRANCH_SIMD_SUMS_INL
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using SumTag = hn::CappedTag<float, 16>;
using SumV = hn::Vec<SumTag>;

constexpr int64_t kParts = 16, kBlock = 2048, kLanes = hn::MaxLanes(SumTag());
constexpr int64_t kVectors = kParts / kLanes;

// `count` numbers, then zeros. Without native masked loads, Highway's may read after the numbers.
HWY_INLINE SumV padded(const float* from, int64_t count) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(SumTag(), static_cast<size_t>(count)), SumTag(), from);
#else
  HWY_ALIGN float buffer[kParts] = {};
  for (int64_t k = 0; k < count; ++k) buffer[k] = from[k];
  return hn::Load(SumTag(), buffer);
#endif
}

template <class D> HWY_INLINE float fold(D /*d*/, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<D> half;
    return fold(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// The sum of sixteen partial sums: the second half is added to the first, until one number is left.
HWY_INLINE float total(SumV (&part)[kVectors]) {
  for (int64_t half = kVectors / 2; half > 0; half /= 2) {
    for (int64_t k = 0; k < half; ++k) part[k] = hn::Add(part[k], part[k + half]);
  }
  return fold(SumTag(), part[0]);
}

// The sum of fn over n numbers of each array, in blocks that are added up in double.
template <class Fn, class... Arrays> HWY_INLINE float sum_of(int64_t n, Fn&& fn, const Arrays*... in) {
  const SumTag d;
  double sum = 0;
  for (int64_t from = 0; from < n; from += kBlock) {
    const int64_t to = n - from < kBlock ? n : from + kBlock;
    SumV part[kVectors];
    for (SumV& p : part) p = hn::Zero(d);
    int64_t i = from;
    for (; i + kParts <= to; i += kParts) {
      for (int64_t k = 0; k < kVectors; ++k) part[k] = hn::Add(part[k], fn(hn::LoadU(d, in + i + k * kLanes)...));
    }
    for (int64_t k = 0; i < to; ++k, i += kLanes) {
      const int64_t count = to - i < kLanes ? to - i : kLanes;
      const auto there = hn::FirstN(d, static_cast<size_t>(count));
      part[k] = hn::Add(part[k], hn::IfThenElseZero(there, fn(padded(in + i, count)...)));
    }
    sum += static_cast<double>(total(part));
  }
  return static_cast<float>(sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::simd
HWY_AFTER_NAMESPACE();
#endif
