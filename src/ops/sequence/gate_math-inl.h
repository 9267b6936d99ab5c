// Vectors of gates for the loops of recurrences, which Highway compiles once for every instruction set.
#if defined(ANABRANCH_GATE_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ANABRANCH_GATE_MATH_INL
#undef ANABRANCH_GATE_MATH_INL
#else
#define ANABRANCH_GATE_MATH_INL
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/kernels/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::sequence::loops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;

// A vector with n valid elements, from row[i] on; zeros if row is null.
struct Part {
  D d;
  int64_t i, n;
  HWY_INLINE V of(const float* row) const {
    if (!row) return hn::Zero(d);
    if (n >= static_cast<int64_t>(hn::Lanes(d))) return hn::LoadU(d, row + i);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
    return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n)), d, row + i);
#else  // a masked load may touch memory after the row
    HWY_ALIGN float buffer[16] = {};
    for (int64_t k = 0; k < n; ++k) buffer[k] = row[i + k];
    return hn::Load(d, buffer);
#endif
  }
  HWY_INLINE void put(V v, float* row) const {
    if (n >= static_cast<int64_t>(hn::Lanes(d))) return hn::StoreU(v, d, row + i);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
    hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(n)), d, row + i);
#else
    HWY_ALIGN float buffer[16];
    hn::Store(v, d, buffer);
    for (int64_t k = 0; k < n; ++k) row[i + k] = buffer[k];
#endif
  }
};

HWY_INLINE V times(V a, V b) { return hn::Mul(a, b); }

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::sequence::loops
HWY_AFTER_NAMESPACE();
#endif
