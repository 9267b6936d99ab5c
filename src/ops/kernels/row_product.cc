#include "ops/kernels/row_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/row_product.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Wide = hn::ScalableTag<float>;
using One = hn::CappedTag<float, 1>;

// Number of rows of b per pass: the sums stay in the L1 cache and are read and written once per pass.
constexpr int kRows = 8;

// kCount vectors of sums from column j on, over kTaken rows.
template <int kTaken, int kCount, class Tag>
HWY_INLINE void add_rows(Tag d, const float* weights, const float* b, int64_t ld_b, float* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<Tag> sums[kCount];
  for (int i = 0; i < kCount; ++i) sums[i] = hn::LoadU(d, out + i * lanes);
  for (int row = 0; row < kTaken; ++row) {
    const auto weight = hn::Set(d, weights[row]);
    for (int i = 0; i < kCount; ++i) {
      sums[i] = hn::MulAdd(weight, hn::LoadU(d, b + row * ld_b + i * lanes), sums[i]);
    }
  }
  for (int i = 0; i < kCount; ++i) hn::StoreU(sums[i], d, out + i * lanes);
}

template <int kTaken>
HWY_INLINE void add_rows(const float* weights, const float* b, int64_t ld_b, int64_t n, float* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Wide()));
  int64_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes) add_rows<kTaken, 2>(Wide(), weights, b + j, ld_b, out + j);
  for (; j + lanes <= n; j += lanes) add_rows<kTaken, 1>(Wide(), weights, b + j, ld_b, out + j);
  for (; j < n; ++j) add_rows<kTaken, 1>(One(), weights, b + j, ld_b, out + j);
}

void RowProduct(const float* a, int64_t a_stride, const float* b, int64_t ld_b, int64_t k, int64_t n, float* out) {
  for (int64_t j = 0; j < n; ++j) out[j] = 0.0f;
  float weights[kRows];
  int64_t l = 0;
  for (; l + kRows <= k; l += kRows) {
    for (int row = 0; row < kRows; ++row) weights[row] = a[(l + row) * a_stride];
    add_rows<kRows>(weights, b + l * ld_b, ld_b, n, out);
  }
  for (; l < k; ++l) add_rows<1>(a + l * a_stride, b + l * ld_b, ld_b, n, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::simd {

HWY_EXPORT(RowProduct);
void row_product(const float* a, int64_t a_stride, const float* b, int64_t ld_b, int64_t k, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(RowProduct)(a, a_stride, b, ld_b, k, n, out);
}

}  // namespace anabranch::simd
#endif  // HWY_ONCE
