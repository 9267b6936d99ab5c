// Reduces a dense tensor over some of its axes. The order of every sum depends only on shapes. Sums of float32 use
// short blocks that are added up in double, so that their error does not grow with the number of terms.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "ops/kernels/flat_loop.h"
#include "ops/kernels/folds.h"
#include "ops/kernels/nd_loop.h"
#include "ops/kernels/simd.h"
#include "ops/kernels/wide.h"

namespace anabranch {

// Folds n adjacent elements to one, with independent partial results.
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

// Folds whose order is irrelevant, or that use double, are split further if there is much to fold.
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

// Sums fn(begin, end) over the chunks of [0, n), in order.
template <class Wide, class Fn> Wide parallel_total(const KernelContext& c, int64_t n, int64_t grain, Fn&& fn) {
  constexpr int64_t kMaxChunks = 64;
  const int64_t chunk = std::max((n + kMaxChunks - 1) / kMaxChunks, std::max<int64_t>(grain, 1));
  Wide parts[kMaxChunks] = {};
  c.parallel_each((n + chunk - 1) / chunk, 1,
                  [&](int64_t k) { parts[k] = fn(k * chunk, std::min(n, (k + 1) * chunk)); });
  Wide total{};
  for (const Wide& p : parts) total += p;
  return total;
}

namespace reduce_detail {

// The axes of a loop over (out, in), split into those of out and those that are folded.
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

// Results at equal distances, each from the elements of the folded axes. `steps`: between results, and their elements.
template <class Fold, class T>
void fold_rows(const NdLoop<2>& folded, const void* in, void* out, std::span<const int64_t, 2> steps, int64_t count) {
  using Wide = typename Fold::Wide;
  const int64_t n = folded.inner(), runs = folded.outer();
  for (int64_t i = 0; i < count; ++i) {
    const T* from = static_cast<const T*>(in) + i * steps[1];
    Wide total = Fold::start;
    folded.each_run(0, runs, [&](const auto& run) { total = Fold::join(total, fold_run<Fold>(from + run[1], n)); });
    static_cast<T*>(out)[i * steps[0]] = static_cast<T>(total);
  }
}

inline constexpr int64_t kStrip = 128;

// Adjacent elements belong to different results: fills a strip of results at once, row after row.
template <class Fold, class T>
void plain_strip(const Axes& axes, const T* in, T* out, int64_t out_step, int64_t width) {
  constexpr int64_t kBlockRows = 64;
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

inline int64_t strips_of(const Axes& axes) { return (axes.kept.inner() + kStrip - 1) / kStrip; }

// Strips [begin, end) of all results. Floats have dedicated vector loops; folds of other types are mostly bound by
// memory.
template <class Fold, class T>
void fold_strips(const Axes& axes, const void* in, void* out, int64_t begin, int64_t end) {
  const auto run = [&axes, in, out, begin, end] {
    const int64_t n = axes.kept.inner(), strips = strips_of(axes);
    const auto step = axes.kept.inner_strides();
    for (int64_t k = begin; k < end; ++k) {
      const int64_t from = k % strips * kStrip;
      axes.kept.each_run(k / strips, k / strips + 1, [&](const auto& at) {
        plain_strip<Fold>(axes, static_cast<const T*>(in) + at[1] + from * step[1],
                          static_cast<T*>(out) + at[0] + from * step[0], step[0], std::min(kStrip, n - from));
      });
    }
  };
  if constexpr (std::is_same_v<T, float>) {
    in_wide_vectors(run);
  } else {
    run();
  }
}

// A single result over all contiguous elements: the sum of chunk sums.
template <class Fold, class T> void fold_whole(const KernelContext& c, const void* in, int64_t n, void* out) {
  using Wide = typename Fold::Wide;
  const T* from = static_cast<const T*>(in);
  *static_cast<T*>(out) = static_cast<T>(parallel_total<Wide>(c, n, kCheapGrain, [from](int64_t begin, int64_t end) {
    return static_cast<Wide>(fold_run<Fold>(from + begin, end - begin));
  }));
}

template <class Fold, class T> void fold_nothing(void* out, int64_t n) {
  std::fill_n(static_cast<T*>(out), n, static_cast<T>(Fold::start));
}

// The operations of a fold; all folds share one walk over the axes.
struct FoldLoops {
  int64_t size;  // of an element
  void (*nothing)(void* out, int64_t n);
  void (*rows)(const NdLoop<2>& folded, const void* in, void* out, std::span<const int64_t, 2> steps, int64_t count);
  void (*strips)(const Axes& axes, const void* in, void* out, int64_t begin, int64_t end);
  void (*whole)(const KernelContext& c, const void* in, int64_t n, void* out);  // only for sums
};

template <class Fold, class T> constexpr auto whole_of() {
  if constexpr (std::is_base_of_v<FoldSum<T>, Fold>) {
    return &fold_whole<Fold, T>;
  } else {
    return nullptr;
  }
}

template <class Fold, class T>
inline constexpr FoldLoops kFoldLoops = {sizeof(T), &fold_nothing<Fold, T>, &fold_rows<Fold, T>, &fold_strips<Fold, T>,
                                         whole_of<Fold, T>()};

void fold_loop(const KernelContext& c, const NdLoop<2>& loop, const FoldLoops& fold, const void* in, void* out,
               int64_t out_numel);

}  // namespace reduce_detail

// loop: operand 0 is `out`, with stride 0 on the folded axes; operand 1 is `in`, dense. Without elements the result is
// the start value of the fold (0 for sums).
template <class Fold, class T>
void fold_loop(const KernelContext& c, const NdLoop<2>& loop, const T* in, T* out, int64_t out_numel) {
  reduce_detail::fold_loop(c, loop, reduce_detail::kFoldLoops<Fold, T>, in, out, out_numel);
}

// Sums `in`, of shape `from`, to the shape `to` of a broadcast operand on the same axes (extents 1 where it was
// broadcast). T: float, double, int32_t, int64_t.
template <class T> void sum_to(const KernelContext& c, const Shape& from, const Shape& to, const T* in, T* out);

}  // namespace anabranch
