#include "ops/kernels/tile_product.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/tile_product.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Tag>;

constexpr int64_t kLanes = hn::MaxLanes(Tag());

// Four numbers of each of four rows become columns.
HWY_INLINE void transpose_four(const float* from, int64_t from_row, float* to, int64_t to_row) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  const auto in = [&](int64_t row) { return hn::LoadU(d, from + row * from_row); };
  const auto a = in(0), b = in(1), c = in(2), e = in(3);
  const auto low = [&](auto x, auto y) { return hn::BitCast(pairs, hn::InterleaveLower(d, x, y)); };
  const auto high = [&](auto x, auto y) { return hn::BitCast(pairs, hn::InterleaveUpper(d, x, y)); };
  const auto out = [&](auto v, int64_t row) { hn::StoreU(hn::BitCast(d, v), d, to + row * to_row); };
  out(hn::InterleaveLower(pairs, low(a, b), low(c, e)), 0);
  out(hn::InterleaveUpper(pairs, low(a, b), low(c, e)), 1);
  out(hn::InterleaveLower(pairs, high(a, b), high(c, e)), 2);
  out(hn::InterleaveUpper(pairs, high(a, b), high(c, e)), 3);
}

// Columns [j, j + width) of B, one row after another; those after the last column are zeros.
HWY_INLINE void pack(const TileProduct& p, int64_t j, int64_t width, float* to) {
  const int64_t taken = std::min(width, p.n - j);
  if (!p.trans_b) {
    for (int64_t l = 0; l < p.k; ++l, to += width) {
      const float* from = p.b + l * p.ld_b + j;
      for (int64_t i = 0; i < taken; ++i) to[i] = from[i];
      for (int64_t i = taken; i < width; ++i) to[i] = 0.0f;
    }
    return;
  }
  if (taken < width) std::fill(to, to + p.k * width, 0.0f);
  for (int64_t i = 0; i < taken; i += 4) {
    const float* from = p.b + (j + i) * p.ld_b;
    int64_t l = 0;
    if (i + 4 <= taken) {
      for (; l + 4 <= p.k; l += 4) transpose_four(from + l, p.ld_b, to + l * width + i, width);
    }
    for (; l < p.k; ++l) {
      for (int64_t r = i; r < std::min(i + 4, taken); ++r) to[l * width + r] = from[(r - i) * p.ld_b + l];
    }
  }
}

// kRows rows of C from row i on, and kCount vectors of columns from column j on, whose rows of B start at `from`.
template <int kRows, int kCount>
HWY_INLINE void tile(const TileProduct& p, int64_t i, int64_t j, const float* from, int64_t step) {
  const Tag d;
  Vector sums[kRows][kCount];
  for (auto& row : sums) {
    for (Vector& sum : row) sum = hn::Zero(d);
  }
  const float* a = p.a + i * p.a_row;
  for (int64_t l = 0; l < p.k; ++l, a += p.a_col, from += step) {
    Vector b[kCount];
    for (int v = 0; v < kCount; ++v) b[v] = hn::LoadU(d, from + v * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const Vector x = hn::Set(d, a[r * p.a_row]);
      for (int v = 0; v < kCount; ++v) sums[r][v] = hn::MulAdd(x, b[v], sums[r][v]);
    }
  }
  const Vector alpha = hn::Set(d, p.alpha);
  for (int r = 0; r < kRows; ++r) {
    float* out = p.out + (i + r) * p.ld_c + j;
    for (int v = 0; v < kCount; ++v) {
      const int64_t left = p.n - j - v * kLanes;
      const Vector c = p.alpha == 1.0f ? sums[r][v] : hn::Mul(sums[r][v], alpha);
      if (left >= kLanes) {
        hn::StoreU(c, d, out + v * kLanes);
      } else if (left > 0) {
        HWY_ALIGN float last[kLanes];
        hn::Store(c, d, last);
        std::memcpy(out + v * kLanes, last, static_cast<size_t>(left) * sizeof(float));
      }
    }
  }
}

template <int kRows, int kCount> HWY_INLINE void columns(const TileProduct& p, int64_t j, float* packed) {
  constexpr int64_t kWidth = kCount * kLanes;
  const bool in_place = !p.trans_b && p.n - j >= kWidth;
  if (!in_place) pack(p, j, kWidth, packed);
  const float* from = in_place ? p.b + j : packed;
  const int64_t step = in_place ? p.ld_b : kWidth;
  int64_t i = 0;
  for (; i + kRows <= p.m; i += kRows) tile<kRows, kCount>(p, i, j, from, step);
  for (; i + 4 <= p.m; i += 4) tile<4, kCount>(p, i, j, from, step);
  for (; i + 2 <= p.m; i += 2) tile<2, kCount>(p, i, j, from, step);
  for (; i < p.m; ++i) tile<1, kCount>(p, i, j, from, step);
}

void Run(const TileProduct& p) {
  HWY_ALIGN float packed[TileProduct::kMostDepth * 2 * kLanes];
  int64_t j = 0;
  for (; p.n - j > kLanes; j += 2 * kLanes) columns<6, 2>(p, j, packed);
  if (j < p.n) columns<8, 1>(p, j, packed);
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::simd {

HWY_EXPORT(Run);
void tile_product(const TileProduct& p) { HWY_DYNAMIC_DISPATCH(Run)(p); }

}  // namespace anabranch::simd
#endif  // HWY_ONCE
