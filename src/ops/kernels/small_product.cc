#include "ops/kernels/small_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/small_product.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"
#include "ops/kernels/simd_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Times {
  template <class V> HWY_INLINE V operator()(V a, V b) const { return hn::Mul(a, b); }
};

// Rows of a matrix, and rows anywhere in memory.
struct Strided {
  const float* first;
  int64_t stride;
  HWY_INLINE const float* operator[](int64_t row) const { return first + row * stride; }
};
struct Listed {
  const float* const* rows;
  HWY_INLINE const float* operator[](int64_t row) const { return rows[row]; }
};

// Dot products with kRows rows of one block, from row `first` on: a vector of `a` is loaded once for all of them.
template <int kRows, class Rows>
HWY_INLINE void block_of_dots(const float* a, Rows b, int64_t first, int64_t n, float* out) {
  const SumTag d;
  SumV part[kRows][kVectors];
  const float* row[kRows];
  for (int r = 0; r < kRows; ++r) {
    row[r] = b[first + r];
    for (SumV& p : part[r]) p = hn::Zero(d);
  }
  int64_t i = 0;
  for (; i + kParts <= n; i += kParts) {
    for (int64_t k = 0; k < kVectors; ++k) {
      const SumV x = hn::LoadU(d, a + i + k * kLanes);
      for (int r = 0; r < kRows; ++r) {
        part[r][k] = hn::Add(part[r][k], hn::Mul(x, hn::LoadU(d, row[r] + i + k * kLanes)));
      }
    }
  }
  for (int64_t k = 0; i < n; ++k, i += kLanes) {
    const int64_t count = n - i < kLanes ? n - i : kLanes;
    const SumV x = padded(a + i, count);
    for (int r = 0; r < kRows; ++r) part[r][k] = hn::Add(part[r][k], hn::Mul(x, padded(row[r] + i, count)));
  }
  for (int r = 0; r < kRows; ++r) out[r] = total(part[r]);
}

template <class Rows> HWY_INLINE void dots_with(float alpha, const float* a, Rows b, int64_t k, int64_t n, float* out) {
  int64_t j = 0;
  if (k <= kBlock) {
    if constexpr (kVectors == 1) {
      for (; j + 4 <= n; j += 4) block_of_dots<4>(a, b, j, k, out + j);
    }
    for (; j + 2 <= n; j += 2) block_of_dots<2>(a, b, j, k, out + j);
    for (; j < n; ++j) block_of_dots<1>(a, b, j, k, out + j);
  }
  for (; j < n; ++j) out[j] = sum_of(k, Times(), a, b[j]);
  for (j = 0; alpha != 1.0f && j < n; ++j) out[j] *= alpha;
}
void Dots(float alpha, const float* a, const float* b, int64_t ld_b, int64_t k, int64_t n, float* out) {
  dots_with(alpha, a, Strided{b, ld_b}, k, n, out);
}
void DotsOfRows(const float* a, const float* const* rows, int64_t k, int64_t n, float* out) {
  dots_with(1.0f, a, Listed{rows}, k, n, out);
}

// kCount vectors of the result, from column j on.
template <int kCount, class Tag, class Rows>
HWY_INLINE void columns(Tag d, float alpha, const float* a, int64_t a_stride, Rows b, int64_t j, int64_t k,
                        float* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<Tag> sums[kCount];
  for (auto& sum : sums) sum = hn::Zero(d);
  for (int64_t l = 0; l < k; ++l) {
    const auto weight = hn::Set(d, a[l * a_stride]);
    const float* row = b[l] + j;
    for (int i = 0; i < kCount; ++i) {
      sums[i] = hn::Add(sums[i], hn::Mul(weight, hn::LoadU(d, row + i * lanes)));
    }
  }
  for (int i = 0; i < kCount; ++i)
    hn::StoreU(alpha == 1.0f ? sums[i] : hn::Mul(sums[i], hn::Set(d, alpha)), d, out + j + i * lanes);
}

template <class Rows>
HWY_INLINE void weighted_rows_of(float alpha, const float* a, int64_t a_stride, Rows b, int64_t k, int64_t n,
                                 float* out) {
  const hn::ScalableTag<float> wide;
  const hn::CappedTag<float, 4> short_one;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(wide)), few = static_cast<int64_t>(hn::Lanes(short_one));
  int64_t j = 0;
  for (; j + 4 * lanes <= n; j += 4 * lanes) columns<4>(wide, alpha, a, a_stride, b, j, k, out);
  for (; j + lanes <= n; j += lanes) columns<1>(wide, alpha, a, a_stride, b, j, k, out);
  for (; j + few <= n; j += few) columns<1>(short_one, alpha, a, a_stride, b, j, k, out);
  for (; j < n; ++j) columns<1>(one, alpha, a, a_stride, b, j, k, out);
}
void WeightedRows(float alpha, const float* a, int64_t a_stride, const float* b, int64_t ld_b, int64_t k, int64_t n,
                  float* out) {
  weighted_rows_of(alpha, a, a_stride, Strided{b, ld_b}, k, n, out);
}
void SumOfRows(const float* a, const float* const* rows, int64_t k, int64_t n, float* out) {
  weighted_rows_of(1.0f, a, 1, Listed{rows}, k, n, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::simd {

HWY_EXPORT(Dots);
void dots(float alpha, const float* a, const float* b, int64_t ld_b, int64_t k, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(Dots)(alpha, a, b, ld_b, k, n, out);
}

HWY_EXPORT(WeightedRows);
void weighted_rows(float alpha, const float* a, int64_t a_stride, const float* b, int64_t ld_b, int64_t k, int64_t n,
                   float* out) {
  HWY_DYNAMIC_DISPATCH(WeightedRows)(alpha, a, a_stride, b, ld_b, k, n, out);
}

HWY_EXPORT(DotsOfRows);
void dots_of_rows(const float* a, const float* const* rows, int64_t k, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(DotsOfRows)(a, rows, k, n, out);
}

HWY_EXPORT(SumOfRows);
void sum_of_rows(const float* a, const float* const* rows, int64_t k, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(SumOfRows)(a, rows, k, n, out);
}

}  // namespace anabranch::simd
#endif  // HWY_ONCE
