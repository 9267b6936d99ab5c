#include "ops/sequence/lstm_panels.h"

#include <algorithm>

#include "ops/sequence/panels.h"

namespace anabranch::sequence {
namespace {

using loops::kPanel, loops::kTileRows, loops::kTileWidth, loops::kUnits;

// Where the gates of a unit lie in a row of 4 d.
template <class T> void point(T* (&gates)[4], T* row, const GateOrder& order, int64_t d, int64_t unit) {
  for (size_t g = 0; g < 4; ++g) gates[g] = row + order[g] * d + unit;
}

}  // namespace

// Two panels for kUnits units: candidate and input, forget and output.
void LstmPanels::pack_gates(const KernelContext& c, const Weights& w) {
  const int64_t d = w.d, blocks = pieces(d, kUnits);
  panels_ = sized<float>(packed_, blocks * d, kTileWidth);
  c.parallel_for(blocks, panel_grain(d, kTileWidth), [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      const int64_t unit = b * kUnits, n = std::min(kUnits, d - unit);
      for (int64_t half = 0; half < 2; ++half) {
        float* panel = panels_ + (b * 2 + half) * d * kPanel;
        for (int64_t l = 0; l < d; ++l) {
          for (int64_t g = 0; g < 2; ++g) {
            const float* from = w.state + l * 4 * d + w.order[static_cast<size_t>(half * 2 + g)] * d + unit;
            float* to = panel + l * kPanel + g * kUnits;
            std::copy(from, from + n, to);
            std::fill(to + n, to + kUnits, 0.0f);
          }
        }
      }
    }
  });
}

// Panels of the transpose: from all gates to kPanel units.
void LstmPanels::pack_units(const KernelContext& c, const Weights& w) {
  constexpr int64_t kLines = 64;  // of a panel, which stay in the cache until all of its columns are there
  const int64_t d = w.d, k = 4 * d, blocks = pieces(d, kPanel);
  panels_ = sized<float>(packed_, blocks * k, kPanel);
  c.parallel_for(blocks, panel_grain(k, kPanel), [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      float* panel = panels_ + b * k * kPanel;
      for (int64_t from = 0; from < k; from += kLines) {
        for (int64_t j = 0; j < kPanel; ++j) {
          const int64_t unit = b * kPanel + j;
          for (int64_t l = from; l < std::min(k, from + kLines); ++l) {
            panel[l * kPanel + j] = unit < d ? w.state[unit * k + l] : 0.0f;
          }
        }
      }
    }
  });
}

void LstmPanels::forward(const KernelContext& c, const Steps& steps, const Weights& w, const Forward& f) {
  const int64_t d = w.d;
  if (steps.count() > 1 || f.hidden) pack_gates(c, w);
  each_band(c, steps, 4 * d * d,
            [&](const KernelContext& with, const Band& band) { forward(with, steps, band, w, f); });
}

void LstmPanels::forward(const KernelContext& c, const Steps& steps, const Band& band, const Weights& w,
                         const Forward& f) const {
  const int64_t d = w.d;
  const float* state = f.hidden ? f.hidden + band.first * d : nullptr;
  const float* before = f.cell ? f.cell + band.first * d : nullptr;
  for (int64_t t = 0; t < steps.count(); ++t) {
    const int64_t at = band.begin(steps, t), rows = band.rows(steps, t);
    if (rows == 0) return;
    c.parallel_for(pieces(d, kUnits), panel_grain(rows, d * kTileWidth), [&](int64_t first, int64_t last) {
      float tile[kTileRows * kTileWidth];
      for (int64_t b = first; b < last; ++b) {
        const int64_t unit = b * kUnits, n = std::min(kUnits, d - unit);
        const float* panel = panels_ + b * 2 * d * kPanel;
        for (int64_t r = 0; r < rows; r += kTileRows) {
          const int64_t m = std::min(kTileRows, rows - r);
          if (state) {
            loops::product(state + r * d, d, m, d, panel, tile, kTileWidth);
            loops::product(state + r * d, d, m, d, panel + d * kPanel, tile + kPanel, kTileWidth);
          }
          for (int64_t i = 0; i < m; ++i) {
            const int64_t own = (at + r + i) * d + unit;
            loops::CellForward row{.tile = state ? tile + i * kTileWidth : nullptr,
                                   .gates = {},
                                   .before = before ? before + (r + i) * d + unit : nullptr,
                                   .cell = f.cells + own,
                                   .hidden = f.hiddens + own};
            point(row.gates, f.gates + (at + r + i) * 4 * d, w.order, d, unit);
            loops::cell_forward(w.rule, unit, n, row);
            if (!f.mask) continue;
            f.mask.keep(at + r + i, row.hidden, state + (r + i) * d + unit, n, f.kept_hiddens + own);
            f.mask.keep(at + r + i, row.cell, row.before, n, f.kept_cells + own);
          }
        }
      }
    });
    state = (f.mask ? f.kept_hiddens : f.hiddens) + at * d;
    before = (f.mask ? f.kept_cells : f.cells) + at * d;
  }
}

void LstmPanels::backward(const KernelContext& c, const Steps& steps, const Weights& w, const Backward& s) {
  const int64_t d = w.d;
  if (steps.count() > 1 || s.dfirst_hidden) pack_units(c, w);
  each_band(c, steps, 4 * d * d,
            [&](const KernelContext& with, const Band& band) { backward(with, steps, band, w, s); });
  if (s.dfirst_hidden) to_hidden(c, steps.widest(), d, s.dgates, s.dfirst_hidden);
}

// A step takes what comes back through the gates of the step after it together with its own.
void LstmPanels::backward(const KernelContext& c, const Steps& steps, const Band& band, const Weights& w,
                          const Backward& s) const {
  const int64_t d = w.d, own_first = band.first * d;
  // Of a step, what the steps after it have left.
  const auto dcells_of = [&](int64_t t) {
    if (s.two_steps) return s.dcells + t % 2 * steps.widest() * d + own_first;
    return (s.mask ? s.dkept_cells : s.dcells) + band.begin(steps, t) * d;
  };
  for (int64_t t = steps.count() - 1; t >= 0; --t) {
    const int64_t at = band.begin(steps, t), rows = band.rows(steps, t), past = t > 0 ? band.begin(steps, t - 1) : 0;
    const int64_t next = t + 1 < steps.count() ? band.begin(steps, t + 1) : 0;
    const int64_t after = t + 1 < steps.count() ? band.rows(steps, t + 1) : 0;
    if (rows == 0) continue;
    if (s.two_steps && after == 0) std::fill_n(dcells_of(t), rows * d, 0.0f);
    const float* first_cell = s.first_cell ? s.first_cell + own_first : nullptr;
    const float* before = t > 0 ? (s.mask ? s.kept_cells : s.cells) + past * d : first_cell;
    float *dcells = dcells_of(t), *dbefore = t > 0 ? dcells_of(t - 1) : s.dfirst_cell + own_first;
    if (s.two_steps && t > 0) std::fill_n(dbefore, band.rows(steps, t - 1) * d, 0.0f);
    float* dstate_before = !s.mask ? nullptr : t > 0 ? s.dkept_hiddens + past * d : s.dfirst_hidden + own_first;
    c.parallel_for(pieces(d, kPanel), panel_grain(rows, 4 * d * kPanel), [&](int64_t first, int64_t last) {
      float tile[kTileRows * kPanel], dhidden[kPanel], dcell[kPanel];
      for (int64_t b = first; b < last; ++b) {
        const int64_t unit = b * kPanel, n = std::min(kPanel, d - unit);
        for (int64_t r = 0; r < rows; r += kTileRows) {
          const int64_t m = std::min(kTileRows, rows - r), with = std::clamp<int64_t>(after - r, 0, m);
          const float* from = s.dgates + (next + r) * 4 * d;
          if (with > 0) loops::product(from, 4 * d, with, 4 * d, panels_ + b * 4 * d * kPanel, tile, kPanel);
          for (int64_t i = 0; i < m; ++i) {
            const int64_t own = (at + r + i) * d + unit, of_before = (r + i) * d + unit;
            loops::CellBackward row{.gates = {},
                                    .cell = s.cells + own,
                                    .before = before ? before + of_before : nullptr,
                                    .tile = i < with ? tile + i * kPanel : nullptr,
                                    .dhidden = s.dhiddens + steps.row(at + r + i) * d + unit,
                                    .dcell = s.mask ? s.dcells + own : dcells + of_before,
                                    .dgates = {},
                                    .dbefore = dbefore + of_before};
            point(row.gates, s.gates + (at + r + i) * 4 * d, w.order, d, unit);
            point(row.dgates, s.dgates + (at + r + i) * 4 * d, w.order, d, unit);
            if (s.mask) {
              s.mask.back(at + r + i, s.dkept_hiddens + own, row.tile, row.dhidden, n, dhidden,
                          dstate_before + of_before);
              s.mask.back(at + r + i, dcells + of_before, nullptr, row.dcell, n, dcell, row.dbefore);
              row.tile = nullptr;
              row.dhidden = dhidden;
              row.dcell = dcell;
            }
            loops::cell_backward(w.rule, unit, n, row);
          }
        }
      }
    });
  }
}

// The gradient of the state before step 0.
void LstmPanels::to_hidden(const KernelContext& c, int64_t rows, int64_t d, const float* dgates, float* out) const {
  c.parallel_for(pieces(d, kPanel), panel_grain(rows, 4 * d * kPanel), [&](int64_t first, int64_t last) {
    float tile[kTileRows * kPanel];
    for (int64_t b = first; b < last; ++b) {
      const int64_t unit = b * kPanel, n = std::min(kPanel, d - unit);
      for (int64_t r = 0; r < rows; r += kTileRows) {
        const int64_t m = std::min(kTileRows, rows - r);
        loops::product(dgates + r * 4 * d, 4 * d, m, 4 * d, panels_ + b * 4 * d * kPanel, tile, kPanel);
        for (int64_t i = 0; i < m; ++i) {
          add_to(tile + i * kPanel, n, out + (r + i) * d + unit);
        }
      }
    }
  });
}

}  // namespace anabranch::sequence
