// Packs the weights of a recurrence into panels for loops::product, and splits a step among workers.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <memory>

#include "ops/sequence/cell_loops.h"
#include "ops/sequence/steps.h"

namespace anabranch::sequence {

inline int64_t chunks(int64_t n, int64_t length) { return (n + length - 1) / length; }

// Number of panels that are worth a task: their multiply-adds take longer than the dispatch.
inline int64_t panel_grain(int64_t rows, int64_t work_of_a_row) {
  constexpr int64_t kWorth = 1 << 18;
  return kWorth / std::max<int64_t>(1, rows * work_of_a_row) + 1;
}

// Calls fn(first unit, units, first row, rows) for blocks of `width` units and loops::kTileRows rows; workers divide
// the units.
template <class Fn>
void each_tile(const KernelContext& c, int64_t d, int64_t width, int64_t rows, int64_t work_of_a_row, Fn&& fn) {
  c.parallel_each(chunks(d, width), panel_grain(rows, work_of_a_row), [&](int64_t b) {
    for (int64_t r = 0; r < rows; r += loops::kTileRows) {
      fn(b * width, std::min(width, d - b * width), r, std::min(loops::kTileRows, rows - r));
    }
  });
}

// Some rows of each step: the same sequences, from their first step to their last. Their number shrinks with t.
struct Band {
  int64_t first, last;
  int64_t rows(const Steps& steps, int64_t t) const {
    return std::clamp<int64_t>(std::min(last, steps.rows(t)) - first, 0, last - first);
  }
  int64_t begin(const Steps& steps, int64_t t) const { return steps.begin(t) + first; }
};

// The positions of the rows of a band in a step and in the adjacent steps, in the order of steps.
struct BandStep {
  int64_t t, at, rows, past, rows_past, after, rows_after, first_row;
  BandStep(const Steps& steps, const Band& band, int64_t step)
      : t(step),
        at(band.begin(steps, t)),
        rows(band.rows(steps, t)),
        past(t > 0 ? band.begin(steps, t - 1) : 0),
        rows_past(t > 0 ? band.rows(steps, t - 1) : 0),
        after(t + 1 < steps.count() ? band.begin(steps, t + 1) : 0),
        rows_after(t + 1 < steps.count() ? band.rows(steps, t + 1) : 0),
        first_row(band.first) {}
};

// Calls fn(context, band) until all rows of the steps are covered. While the weights fit the caches of each core, a
// worker runs all steps of a band without waiting for others; above that all workers share each step, and the weights.
// No sum depends on this: rows are independent.
template <class Fn> void each_band(const KernelContext& c, const Steps& steps, int64_t floats_of_weights, Fn&& fn) {
  constexpr int64_t kInCache = int64_t{192} * 1024, kBandRows = 12;  // rows: the size of a register tile
  const int64_t rows = steps.widest(), bands = floats_of_weights > kInCache ? 1 : chunks(rows, kBandRows);
  if (bands < 2) return fn(c, Band{0, rows});
  const int64_t height = chunks(rows, bands);
  IterationContext alone(c);  // c may be one, too
  alone.parallel = nullptr;
  c.parallel_each(chunks(rows, height), panel_grain(steps.begin(steps.count()) / bands, floats_of_weights),
                  [&](int64_t b) {
                    fn(alone, Band{b * height, std::min(rows, (b + 1) * height)});
                  });
}

// A matrix [k, n] in panels of loops::kPanel columns.
class Panels {
 public:
  // Columns of `weight`, [k, ...] with rows `ld` apart: one or two runs of them per panel, one panel after another for
  // the first units of all runs, then for the following units. Run i has n columns from `runs`[i] on.
  void pack(const KernelContext& c, const float* weight, int64_t k, int64_t n, int64_t ld,
            std::initializer_list<int64_t> runs) {
    const int64_t parts = std::min<int64_t>(2, std::ssize(runs)), width = loops::kPanel / parts;
    const int64_t groups = std::ssize(runs) / parts, count = chunks(n, width) * groups;
    k_ = k;
    panels_ = sized<float>(memory_, count * k, loops::kPanel);
    c.parallel_each(count, panel_grain(k, loops::kPanel), [&](int64_t p) {
      const int64_t unit = p / groups * width, here = std::min(width, n - unit);
      const int64_t* run = runs.begin() + p % groups * parts;
      for (int64_t l = 0; l < k; ++l) {
        for (int64_t i = 0; i < parts; ++i) {
          const float* from = weight + l * ld + run[i] + unit;
          float* to = panels_ + (p * k + l) * loops::kPanel + i * width;
          std::copy(from, from + here, to);
          std::fill(to + here, to + width, 0.0f);
        }
      }
    });
  }

  // The transpose of `weight`, [n, k] with rows `ld` apart.
  void pack_turned(const KernelContext& c, const float* weight, int64_t k, int64_t n, int64_t ld) {
    constexpr int64_t kLines = 64;  // of a panel, which stay in the cache until all of its columns are filled
    k_ = k;
    panels_ = sized<float>(memory_, chunks(n, loops::kPanel) * k, loops::kPanel);
    c.parallel_each(chunks(n, loops::kPanel), panel_grain(k, loops::kPanel), [&](int64_t p) {
      float* panel = panels_ + p * k * loops::kPanel;
      for (int64_t from = 0; from < k; from += kLines) {
        for (int64_t j = 0; j < loops::kPanel; ++j) {
          const int64_t row = p * loops::kPanel + j;
          for (int64_t l = from; l < std::min(k, from + kLines); ++l) {
            panel[l * loops::kPanel + j] = row < n ? weight[row * ld + l] : 0.0f;
          }
        }
      }
    });
  }

  // tile [m, kPanel], with rows ld_tile apart, = rows of a by panel number p.
  void product(const float* a, int64_t lda, int64_t m, int64_t p, float* tile, int64_t ld_tile = loops::kPanel) const {
    loops::product(a, lda, m, k_, panels_ + p * k_ * loops::kPanel, tile, ld_tile);
  }

  // out [rows, n] += rows of a by all panels.
  void add_product(const KernelContext& c, const float* a, int64_t lda, int64_t rows, int64_t n, float* out) const {
    each_tile(c, n, loops::kPanel, rows, k_ * loops::kPanel, [&](int64_t unit, int64_t here, int64_t r, int64_t m) {
      float tile[loops::kTileRows * loops::kPanel];
      product(a + r * lda, lda, m, unit / loops::kPanel, tile);
      for (int64_t i = 0; i < m; ++i) add_to(tile + i * loops::kPanel, here, out + (r + i) * n + unit);
    });
  }

 private:
  std::shared_ptr<Tensor> memory_ = std::make_shared<Tensor>();
  float* panels_ = nullptr;
  int64_t k_ = 0;
};

// The operand that a step multiplies by packed weights: the first `count` rows of a matrix with rows ld apart; null if
// there is no product. A tile of `width` units has one or more panels.
struct StepProduct {
  const Panels& panels;
  const float* from;
  int64_t ld, count, width = loops::kPanel, panels_of_tile = 1;
};

// Calls fn(row, unit, units, tile) for blocks of units of all rows of a step; tile: the product for that row, or null.
template <class Fn>
void each_units(const KernelContext& c, const StepProduct& by, int64_t d, int64_t rows, int64_t work, Fn&& fn) {
  const int64_t wide = by.panels_of_tile * loops::kPanel;
  each_tile(c, d, by.width, rows, work, [&](int64_t unit, int64_t n, int64_t r, int64_t m) {
    float tile[loops::kTileRows * loops::kTileWidth];
    const int64_t with = by.from ? std::clamp<int64_t>(by.count - r, 0, m) : 0;
    for (int64_t p = 0; with > 0 && p < by.panels_of_tile; ++p) {
      by.panels.product(by.from + r * by.ld, by.ld, with, unit / by.width * by.panels_of_tile + p,
                        tile + p * loops::kPanel, wide);
    }
    for (int64_t i = 0; i < m; ++i) fn(r + i, unit, n, i < with ? tile + i * wide : nullptr);
  });
}

}  // namespace anabranch::sequence
