#include "ops/nn/conv_rows_loops.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/conv_rows_loops.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::nn::rows {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Lanes>;

// All sums of a tile stay in registers, of which AVX-512 has 32 and others 16.
constexpr bool kMany = HWY_TARGET <= HWY_AVX3;
constexpr int kVectors = kMany ? 3 : 2, kRows = kMany ? 8 : 6;
constexpr int kFilterVectors = 3, kFilterRows = kMany ? 8 : 4;

template <int R, int V> HWY_INLINE void zero(Vector (&sums)[R][V]) {
  for (auto& row : sums) {
    for (Vector& sum : row) sum = hn::Zero(Lanes());
  }
}

template <int R, int V> void image_tile(const ImageJob& j, int64_t row) {
  const Lanes d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector sums[R][V];
  zero(sums);
  const float* first[R];
  for (int r = 0; r < R; ++r) first[r] = j.in + j.from[row + r];
  for (int64_t t = 0; t < j.tap_count; ++t) {
    const float* weights = j.weights + j.taps[t].weight * V * lanes;
    for (int64_t b = 0; b < j.form.blocks; ++b) {
      const float* in[R];
      for (int r = 0; r < R; ++r) in[r] = first[r] + j.taps[t].image + b * j.form.stride;
      for (int64_t c = 0; c < j.form.width; ++c, weights += V * lanes) {
        Vector w[V];
        for (int v = 0; v < V; ++v) w[v] = hn::LoadU(d, weights + v * lanes);
        for (int r = 0; r < R; ++r) {
          const Vector x = hn::Set(d, in[r][c]);
          for (int v = 0; v < V; ++v) sums[r][v] = hn::MulAdd(x, w[v], sums[r][v]);
        }
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) hn::StoreU(sums[r][v], d, j.out + j.to[row + r] + j.place[v]);
  }
}

template <int R, int V> void image_rows(const ImageJob& j, int64_t row, int64_t left) {
  for (; left >= R; left -= R, row += R) image_tile<R, V>(j, row);
  if constexpr (R > 1) {
    if (left > 0) image_rows<R - 1, V>(j, row, left);
  }
}

void Images(const ImageJob& j) {
  switch (j.vectors) {
    case 1: return image_rows<kRows, 1>(j, 0, j.rows);
    case 2: return image_rows<kRows, 2>(j, 0, j.rows);
    default: return image_rows<kRows, kVectors>(j, 0, j.rows);
  }
}

template <int R, int V> void filter_tile(const FilterJob& j) {
  const Lanes d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector sums[R][V];
  zero(sums);
  if (!j.first) {
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < V; ++v) sums[r][v] = hn::LoadU(d, j.sums + (r * V + v) * lanes);
    }
  }
  for (int64_t n = 0; n < j.samples; ++n) {
    for (int64_t i = 0; i < j.run_count; ++i) {
      const Run& run = j.runs[i];
      const float* down = j.down + n * j.down_sample + (j.turned ? run.image : run.dout);
      const float* across = j.across + n * j.across_sample + (j.turned ? run.dout : run.image);
      const float* at[V];
      for (int v = 0; v < V; ++v) at[v] = across + j.place[v];
      for (int64_t k = 0; k < run.count; ++k, down += j.down_step) {
        Vector x[V];
        for (int v = 0; v < V; ++v) x[v] = hn::LoadU(d, at[v] + k * j.across_step);
        for (int r = 0; r < R; ++r) {
          const Vector g = hn::Set(d, down[r]);
          for (int v = 0; v < V; ++v) sums[r][v] = hn::MulAdd(g, x[v], sums[r][v]);
        }
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) hn::StoreU(sums[r][v], d, j.sums + (r * V + v) * lanes);
  }
}

template <int R, int V> void filter_rows(const FilterJob& j) {
  if constexpr (R > 1) {
    if (j.rows < R) return filter_rows<R - 1, V>(j);
  }
  filter_tile<R, V>(j);
}

void Filter(const FilterJob& j) {
  switch (j.vectors) {
    case 1: return filter_rows<kFilterRows, 1>(j);
    case 2: return filter_rows<kFilterRows, 2>(j);
    default: return filter_rows<kFilterRows, kFilterVectors>(j);
  }
}

// Four numbers of each of four rows become columns.
HWY_INLINE void transpose_four(const float* from, int64_t from_row, float* to, int64_t to_row) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  const auto in = [&](int64_t row) HWY_ATTR { return hn::LoadU(d, from + row * from_row); };
  const auto a = in(0), b = in(1), c = in(2), e = in(3);
  const auto low = [&](auto x, auto y) HWY_ATTR { return hn::BitCast(pairs, hn::InterleaveLower(d, x, y)); };
  const auto high = [&](auto x, auto y) HWY_ATTR { return hn::BitCast(pairs, hn::InterleaveUpper(d, x, y)); };
  const auto out = [&](auto v, int64_t row) HWY_ATTR { hn::StoreU(hn::BitCast(d, v), d, to + row * to_row); };
  out(hn::InterleaveLower(pairs, low(a, b), low(c, e)), 0);
  out(hn::InterleaveUpper(pairs, low(a, b), low(c, e)), 1);
  out(hn::InterleaveLower(pairs, high(a, b), high(c, e)), 2);
  out(hn::InterleaveUpper(pairs, high(a, b), high(c, e)), 3);
}

void Transpose(const float* from, int64_t from_row, int64_t rows, int64_t columns, float* to, int64_t to_row) {
  constexpr int64_t kStep = 4, kSquare = 16;
  const int64_t whole_rows = rows / kStep * kStep, whole_columns = columns / kStep * kStep;
  for (int64_t square = 0; square < whole_rows; square += kSquare) {
    const int64_t end = std::min(whole_rows, square + kSquare);
    for (int64_t k = 0; k < whole_columns; k += kStep) {
      for (int64_t r = square; r < end; r += kStep) {
        transpose_four(from + r * from_row + k, from_row, to + k * to_row + r, to_row);
      }
    }
  }
  for (int64_t k = 0; k < columns; ++k) {
    for (int64_t r = k < whole_columns ? whole_rows : 0; r < rows; ++r) to[k * to_row + r] = from[r * from_row + k];
  }
}

Sizes Limits() { return {static_cast<int64_t>(hn::Lanes(Lanes())), kRows, kVectors, kFilterRows, kFilterVectors}; }

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::nn::rows
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::nn::rows {
namespace {
HWY_EXPORT(Images);
HWY_EXPORT(Filter);
HWY_EXPORT(Limits);
HWY_EXPORT(Transpose);
}  // namespace

Sizes sizes() {
  static const Sizes found = HWY_DYNAMIC_DISPATCH(Limits)();
  return found;
}
void run(const ImageJob& job) { HWY_DYNAMIC_DISPATCH(Images)(job); }
void run(const FilterJob& job) { HWY_DYNAMIC_DISPATCH(Filter)(job); }
void transpose(const float* from, int64_t from_row, int64_t rows, int64_t columns, float* to, int64_t to_row) {
  HWY_DYNAMIC_DISPATCH(Transpose)(from, from_row, rows, columns, to, to_row);
}

}  // namespace anabranch::nn::rows
#endif
