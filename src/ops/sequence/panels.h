// Weights of a recurrence in panels for loops::product, and the splitting of a step among workers.
#pragma once
#include <algorithm>
#include <memory>

#include "ops/sequence/recurrent.h"
#include "ops/sequence/step_loops.h"

namespace anabranch::sequence {

inline int64_t pieces(int64_t n, int64_t length) { return (n + length - 1) / length; }

// Panels that are worth a piece of their own: their multiply-adds take longer than handing them over.
inline int64_t panel_grain(int64_t rows, int64_t work_of_a_row) {
  constexpr int64_t kWorth = 1 << 18;
  return kWorth / std::max<int64_t>(1, rows * work_of_a_row) + 1;
}

// fn(first unit, units, first row, rows) for blocks of `width` units and loops::kTileRows rows, units among workers.
template <class Fn>
void each_tile(const KernelContext& c, int64_t d, int64_t width, int64_t rows, int64_t work_of_a_row, Fn&& fn) {
  c.parallel_for(pieces(d, width), panel_grain(rows, work_of_a_row), [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      for (int64_t r = 0; r < rows; r += loops::kTileRows) {
        fn(b * width, std::min(width, d - b * width), r, std::min(loops::kTileRows, rows - r));
      }
    }
  });
}

// Some rows of each step: the same sequences, from their first step to their last. With t their number shrinks.
struct Band {
  int64_t first, last;
  int64_t rows(const Steps& steps, int64_t t) const {
    return std::clamp<int64_t>(std::min(last, steps.rows(t)) - first, 0, last - first);
  }
  int64_t begin(const Steps& steps, int64_t t) const { return steps.begin(t) + first; }
};

// fn(context, band) until all rows of the steps are covered. While the weights fit the caches of each core, a worker
// takes a band through all steps without waiting for others; above that all workers share each step, and the weights.
// No sum depends on it: rows know nothing of each other.
template <class Fn> void each_band(const KernelContext& c, const Steps& steps, int64_t floats_of_weights, Fn&& fn) {
  constexpr int64_t kInCache = 192 * 1024, kBandRows = 12;  // rows: as many as a tile of registers has
  const int64_t rows = steps.widest(), bands = floats_of_weights > kInCache ? 1 : pieces(rows, kBandRows);
  if (bands < 2) return fn(c, Band{0, rows});
  const int64_t height = pieces(rows, bands);
  KernelContext alone = c;
  alone.parallel = nullptr;
  c.parallel_for(pieces(rows, height), panel_grain(steps.begin(steps.count()) / bands, floats_of_weights),
                 [&](int64_t first, int64_t last) {
                   for (int64_t b = first; b < last; ++b) {
                     fn(alone, Band{b * height, std::min(rows, (b + 1) * height)});
                   }
                 });
}

// A matrix [k, n] in panels of loops::kPanel columns.
class Panels {
 public:
  // Columns of `weight`, [k, ...] with rows `ld` apart: panel p holds `parts` runs of kPanel / parts columns, the i-th
  // from column i * apart on.
  void pack(const KernelContext& c, const float* weight, int64_t k, int64_t n, int64_t ld, int64_t parts,
            int64_t apart) {
    const int64_t run = loops::kPanel / parts, count = pieces(n, run);
    k_ = k;
    panels_ = sized<float>(memory_, count * k, loops::kPanel);
    c.parallel_for(count, panel_grain(k, loops::kPanel), [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        const int64_t here = std::min(run, n - p * run);
        for (int64_t l = 0; l < k; ++l) {
          for (int64_t i = 0; i < parts; ++i) {
            const float* from = weight + l * ld + i * apart + p * run;
            float* to = panels_ + (p * k + l) * loops::kPanel + i * run;
            std::copy(from, from + here, to);
            std::fill(to + here, to + run, 0.0f);
          }
        }
      }
    });
  }

  // The transpose of `weight`, [n, k] with rows `ld` apart.
  void pack_turned(const KernelContext& c, const float* weight, int64_t k, int64_t n, int64_t ld) {
    constexpr int64_t kLines = 64;  // of a panel, which stay in the cache until all of its columns are there
    k_ = k;
    panels_ = sized<float>(memory_, pieces(n, loops::kPanel) * k, loops::kPanel);
    c.parallel_for(pieces(n, loops::kPanel), panel_grain(k, loops::kPanel), [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        float* panel = panels_ + p * k * loops::kPanel;
        for (int64_t from = 0; from < k; from += kLines) {
          for (int64_t j = 0; j < loops::kPanel; ++j) {
            const int64_t row = p * loops::kPanel + j;
            for (int64_t l = from; l < std::min(k, from + kLines); ++l) {
              panel[l * loops::kPanel + j] = row < n ? weight[row * ld + l] : 0.0f;
            }
          }
        }
      }
    });
  }

  // tile [m, kPanel] = rows of a by panel number p.
  void product(const float* a, int64_t lda, int64_t m, int64_t p, float* tile) const {
    loops::product(a, lda, m, k_, panels_ + p * k_ * loops::kPanel, tile, loops::kPanel);
  }

 private:
  std::shared_ptr<Tensor> memory_ = std::make_shared<Tensor>();
  float* panels_ = nullptr;
  int64_t k_ = 0;
};

}  // namespace anabranch::sequence
