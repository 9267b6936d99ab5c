// Folding a dense tensor over some of its axes. The order of every sum is fixed by shapes alone. Sums of float32 are
// taken in short blocks and added up in double, so that their error does not grow with the number of terms.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/kernels/flat_loop.h"
#include "ops/kernels/folds.h"
#include "ops/kernels/nd_loop.h"
#include "ops/kernels/simd.h"
#include "ops/kernels/wide.h"

namespace anabranch {

// n neighbouring elements to one, in parts that do not wait for each other.
template <class Fold, int64_t kParts, class T> typename Fold::Wide fold_parts(const T* x, int64_t n) {
  using Wide = typename Fold::Wide;
  Wide part[kParts];
  for (Wide& p : part) p = Fold::start;
  int64_t i = 0;
  for (; i + kParts <= n; i += kParts) {
    for (int64_t k = 0; k < kParts; ++k) part[k] = Fold::join(part[k], static_cast<Wide>(lifted<Fold>(x[i + k])));
  }
  for (; i < n; ++i) part[i % kParts] = Fold::join(part[i % kParts], static_cast<Wide>(lifted<Fold>(x[i])));
  for (int64_t half = kParts / 2; half > 0; half /= 2) {
    for (int64_t k = 0; k < half; ++k) part[k] = Fold::join(part[k], part[k + half]);
  }
  return part[0];
}

// Folds whose order does not matter, or that are taken in double, are cut into more parts where there is much to fold.
template <class Fold, class T> typename Fold::Wide fold_run(const T* x, int64_t n) {
  constexpr int64_t kWideRun = 64;
  if constexpr (std::is_same_v<Fold, FoldSum<float>>) {
    return simd::sum(x, n);
  } else if constexpr (requires { Fold::in_many_parts; }) {
    if (n < kWideRun) return fold_parts<Fold, 8>(x, n);
    typename Fold::Wide folded = Fold::start;
    in_wide_vectors([x, n, &folded] { folded = fold_parts<Fold, 128 / sizeof(T)>(x, n); });
    return folded;
  } else {
    return fold_parts<Fold, 8>(x, n);
  }
}

// Adds up fn(begin, end) over the pieces of [0, n), in their order.
template <class Wide, class Fn> Wide parallel_total(const KernelContext& c, int64_t n, int64_t grain, Fn&& fn) {
  constexpr int64_t kMaxPieces = 64;
  const int64_t piece = std::max((n + kMaxPieces - 1) / kMaxPieces, std::max<int64_t>(grain, 1));
  Wide parts[kMaxPieces] = {};
  c.parallel_for((n + piece - 1) / piece, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) parts[k] = fn(k * piece, std::min(n, (k + 1) * piece));
  });
  Wide total{};
  for (const Wide& p : parts) total += p;
  return total;
}

namespace reduce_detail {

// The axes of a loop over (out, in), apart: those that out walks, and those that are folded.
struct Axes {
  NdLoop<2> kept, folded;
  bool runs_folded = true;  // the innermost axis is a folded one
  explicit Axes(const NdLoop<2>& loop) {
    for (int i = 0; i < loop.rank(); ++i) {
      runs_folded = loop.strides(i)[0] == 0;
      (runs_folded ? folded : kept).add_axis(loop.extent(i), loop.strides(i));
    }
  }
};

template <class Fold, class T> void fold_rows(const KernelContext& c, const Axes& axes, const T* in, T* out) {
  using Wide = typename Fold::Wide;
  const int64_t n = axes.folded.inner(), runs = axes.folded.outer();
  axes.kept.run(c, std::max<int64_t>(1, kCheapGrain / axes.folded.total()), [&](const auto& at, int64_t count) {
    const auto step = axes.kept.inner_strides();
    for (int64_t i = 0; i < count; ++i) {
      const T* from = in + at[1] + i * step[1];
      Wide total = Fold::start;
      axes.folded.each_run(0, runs,
                           [&](const auto& run) { total = Fold::join(total, fold_run<Fold>(from + run[1], n)); });
      out[at[0] + i * step[0]] = static_cast<T>(total);
    }
  });
}

// Neighbours in memory belong to different results: a strip of results is filled at once, row after row.
template <class Fold, class T> void fold_strip(const Axes& axes, const T* in, T* out, int64_t out_step, int64_t width) {
  constexpr int64_t kStrip = 128, kBlockRows = 64;
  using Wide = typename Fold::Wide;
  Wide total[kStrip];
  T part[kStrip];
  std::fill_n(total, width, Wide(Fold::start));
  std::fill_n(part, width, Fold::start);
  int64_t rows = 0;
  const auto flush = [&] {
    for (int64_t j = 0; j < width; ++j) total[j] = Fold::join(total[j], static_cast<Wide>(part[j]));
    std::fill_n(part, width, Fold::start);
    rows = 0;
  };
  const int64_t step = axes.folded.inner_strides()[1];
  axes.folded.each_run(0, axes.folded.outer(), [&](const auto& run) {
    for (int64_t i = 0; i < axes.folded.inner(); ++i) {
      const T* row = in + run[1] + i * step;
      for (int64_t j = 0; j < width; ++j) part[j] = Fold::join(part[j], lifted<Fold>(row[j]));
      if (++rows == kBlockRows) flush();
    }
  });
  flush();
  for (int64_t j = 0; j < width; ++j) out[j * out_step] = static_cast<T>(total[j]);
}

template <class Fold, class T> void fold_columns(const KernelContext& c, const Axes& axes, const T* in, T* out) {
  constexpr int64_t kStrip = 128;
  const int64_t n = axes.kept.inner(), strips = (n + kStrip - 1) / kStrip;
  const auto step = axes.kept.inner_strides();
  const int64_t work = std::max<int64_t>(1, axes.folded.total() * std::min(n, kStrip));
  c.parallel_for(axes.kept.outer() * strips, std::max<int64_t>(1, kCheapGrain / work), [&](int64_t begin, int64_t end) {
    in_wide_vectors([&] {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t from = k % strips * kStrip;
        axes.kept.each_run(k / strips, k / strips + 1, [&](const auto& at) {
          fold_strip<Fold>(axes, in + at[1] + from * step[1], out + at[0] + from * step[0], step[0],
                           std::min(kStrip, n - from));
        });
      }
    });
  });
}

}  // namespace reduce_detail

// loop: operand 0 is `out`, with stride 0 on the axes that are folded; operand 1 is `in`, dense. Nothing to fold gives
// the fold's start value (0 for sums).
template <class Fold, class T>
void fold_loop(const KernelContext& c, const NdLoop<2>& loop, const T* in, T* out, int64_t out_numel) {
  if (loop.total() == 0) {
    std::fill_n(out, out_numel, static_cast<T>(Fold::start));
    return;
  }
  const reduce_detail::Axes axes(loop);
  if (axes.kept.total() == 1 && axes.folded.outer() == 1 && std::is_base_of_v<FoldSum<T>, Fold>) {
    using Wide = typename Fold::Wide;
    *out = static_cast<T>(parallel_total<Wide>(c, axes.folded.inner(), kCheapGrain, [&](int64_t begin, int64_t end) {
      return static_cast<Wide>(fold_run<Fold>(in + begin, end - begin));
    }));
  } else if (axes.runs_folded) {
    reduce_detail::fold_rows<Fold>(c, axes, in, out);
  } else {
    reduce_detail::fold_columns<Fold>(c, axes, in, out);
  }
}

// Sums `in`, of shape `from`, down to the operand laid on its axes as `to` (extents 1 where it was repeated).
template <class T> void sum_to(const KernelContext& c, const Shape& from, const Shape& to, const T* in, T* out) {
  const auto in_strides = dense_strides(from), out_strides = dense_strides(to);
  NdLoop<2> loop;
  for (int i = 0; i < from.rank(); ++i) loop.add_axis(from[i], {to[i] == 1 ? 0 : out_strides[i], in_strides[i]});
  fold_loop<FoldSum<T>>(c, loop, in, out, to.numel());
}

}  // namespace anabranch
