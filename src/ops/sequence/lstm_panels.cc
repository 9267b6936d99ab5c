#include "ops/sequence/lstm_panels.h"

#include <algorithm>

#include "ops/sequence/panels.h"

namespace anabranch::sequence {
namespace {

using loops::kPanel, loops::kTileRows, loops::kTileWidth, loops::kUnits;

// Positions of the gates of a unit in a row of 4 d.
template <class T> void point(T* (&gates)[4], T* row, const GateOrder& order, int64_t d, int64_t unit) {
  for (size_t g = 0; g < 4; ++g) gates[g] = row + order[g] * d + unit;
}

}  // namespace

void LstmPanels::forward(const KernelContext& c, const Steps& steps, const Weights& w, const Forward& f) {
  const int64_t d = w.d;
  const auto run = [&](size_t gate) { return w.order[gate] * d; };
  if (steps.count() > 1 || f.hidden) panels_.pack(c, w.state, d, d, 4 * d, {run(0), run(1), run(2), run(3)});
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
    each_tile(c, d, kUnits, rows, d * kTileWidth, [&](int64_t unit, int64_t n, int64_t r, int64_t m) {
      float tile[kTileRows * kTileWidth];
      for (int64_t half = 0; state && half < 2; ++half) {
        panels_.product(state + r * d, d, m, unit / kUnits * 2 + half, tile + half * kPanel, kTileWidth);
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
    });
    state = (f.mask ? f.kept_hiddens : f.hiddens) + at * d;
    before = (f.mask ? f.kept_cells : f.cells) + at * d;
  }
}

void LstmPanels::backward(const KernelContext& c, const Steps& steps, const Weights& w, const Backward& s) {
  const int64_t d = w.d;
  if (steps.count() > 1 || s.dfirst_hidden) panels_.pack_turned(c, w.state, 4 * d, d, 4 * d);
  each_band(c, steps, 4 * d * d, [&](const KernelContext& with, const Band& band) {
    for (int64_t t = steps.count() - 1; t >= 0; --t) step_back(with, steps, w, s, BandStep(steps, band, t));
  });
  if (s.dfirst_hidden) panels_.add_product(c, s.dgates, 4 * d, steps.widest(), d, s.dfirst_hidden);
}

// Combines the gradients through the gates of the next step with those of this step.
void LstmPanels::step_back(const KernelContext& c, const Steps& steps, const Weights& w, const Backward& s,
                           const BandStep& place) const {
  const int64_t d = w.d, own_first = place.first_row * d, t = place.t, at = place.at, past = place.past;
  if (place.rows == 0) return;
  // Gradients that the later steps left for this step.
  const auto dcells_of = [&](int64_t step, int64_t begin) {
    if (s.two_steps) return s.dcells + step % 2 * steps.widest() * d + own_first;
    return (s.mask ? s.dkept_cells : s.dcells) + begin * d;
  };
  float *dcells = dcells_of(t, at), *dbefore = t > 0 ? dcells_of(t - 1, past) : s.dfirst_cell + own_first;
  if (s.two_steps && place.rows_after == 0) std::fill_n(dcells, place.rows * d, 0.0f);
  if (s.two_steps && t > 0) std::fill_n(dbefore, place.rows_past * d, 0.0f);
  const float* first_cell = s.first_cell ? s.first_cell + own_first : nullptr;
  const float* before = t > 0 ? (s.mask ? s.kept_cells : s.cells) + past * d : first_cell;
  float* dstate_before = !s.mask ? nullptr : t > 0 ? s.dkept_hiddens + past * d : s.dfirst_hidden + own_first;
  each_tile(c, d, kPanel, place.rows, 4 * d * kPanel, [&](int64_t unit, int64_t n, int64_t r, int64_t m) {
    float tile[kTileRows * kPanel], dhidden[kPanel], dcell[kPanel];
    const int64_t with = std::clamp<int64_t>(place.rows_after - r, 0, m);
    if (with > 0) panels_.product(s.dgates + (place.after + r) * 4 * d, 4 * d, with, unit / kPanel, tile);
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
        s.mask.back(at + r + i, s.dkept_hiddens + own, row.tile, row.dhidden, n, dhidden, dstate_before + of_before);
        s.mask.back(at + r + i, dcells + of_before, nullptr, row.dcell, n, dcell, row.dbefore);
        row.tile = nullptr;
        row.dhidden = dhidden;
        row.dcell = dcell;
      }
      loops::cell_backward(w.rule, unit, n, row);
    }
  });
}

}  // namespace anabranch::sequence
