#include "ops/sequence/lstm_panels.h"

#include <algorithm>

namespace anabranch::sequence {

using loops::run_units;

void LstmPanels::forward(const KernelContext& c, const device::LstmRule& rule, const LstmWeights<float>& w,
                         const LstmRows<float>& r) {
  const int64_t d = rule.units;
  const auto run = [&](int gate) { return rule.places[gate] * d; };
  if (r.order.count() > 1 || r.first_hidden) {
    panels_.pack(c, w.state.at, d, d, 4 * d, {run(0), run(1), run(2), run(3)});
  }
  each_band(c, r.order, 4 * d * d,
            [&](const KernelContext& with, const Band& band) { forward(with, band, rule, w, r); });
}

void LstmPanels::forward(const KernelContext& c, const Band& band, const device::LstmRule& rule,
                         const LstmWeights<float>& w, const LstmRows<float>& r) const {
  const int64_t d = rule.units;
  const float* state = r.first_hidden ? r.first_hidden.at + band.first * d : nullptr;
  const float* before = r.first_cell ? r.first_cell.at + band.first * d : nullptr;
  for (int64_t t = 0; t < r.order.count(); ++t) {
    const int64_t at = band.begin(r.order, t), rows = band.rows(r.order, t), own = at * d;
    if (rows == 0) return;
    const LstmCell::Row<float> row{r.gates.at + 4 * own, before, w.peepholes.at, r.cells.at + own, r.hiddens.at + own};
    const StepProduct by{panels_, state, d, rows, loops::kUnits, 2};
    each_units(c, by, d, rows, d * loops::kTileWidth, [&](int64_t i, int64_t unit, int64_t n, const float* tile) {
      const UnitPlace of(i, unit, d, 4, d);
      run_units<LstmCell>(rule, row, of, n, tile);
      if (!r.mask) return;
      const float* shares = r.mask.at + at;
      run_units<KeepRows>({d}, {shares, row.hidden, state, nullptr, r.kept_hiddens.at + own, nullptr}, of, n, nullptr);
      run_units<KeepRows>({d}, {shares, row.cell, before, nullptr, r.kept_cells.at + own, nullptr}, of, n, nullptr);
    });
    state = (r.mask ? r.kept_hiddens : r.hiddens).at + own;
    before = (r.mask ? r.kept_cells : r.cells).at + own;
  }
}

void LstmPanels::backward(const KernelContext& c, OnHost<float>::Room& room, const device::LstmRule& rule,
                          const LstmWeights<float>& w, Gradients g) {
  const int64_t d = rule.units;
  const Steps& steps = g.rows.order();
  const bool two_steps = !g.dcells;
  if (two_steps) g.dcells = g.mask ? room.zeros(g.rows.rows(), d) : room.rows(2 * steps.widest(), d);
  if (!g.dfirst_cell) g.dfirst_cell = room.zeros(steps.widest(), d);
  if (g.mask && !g.dfirst_hidden) g.dfirst_hidden = room.zeros(steps.widest(), d);
  if (steps.count() > 1 || g.dfirst_hidden) panels_.pack_turned(c, w.state.at, 4 * d, d, 4 * d);
  each_band(c, steps, 4 * d * d, [&](const KernelContext& with, const Band& band) {
    for (int64_t t = steps.count() - 1; t >= 0; --t) {
      step_back(with, rule, w, g, two_steps && !g.mask, BandStep(steps, band, t));
    }
  });
  if (g.dfirst_hidden) panels_.add_product(c, g.dgates.at, 4 * d, steps.widest(), d, g.dfirst_hidden.at);
}

// Combines the gradients through the gates of the next step with those of this step. two_steps: dcells has room for
// two steps, which begin with zeros.
void LstmPanels::step_back(const KernelContext& c, const device::LstmRule& rule, const LstmWeights<float>& w,
                           const Gradients& g, bool two_steps, const BandStep& place) const {
  const Steps& steps = g.rows.order();
  const int64_t d = rule.units, own_first = place.first_row * d, t = place.t, at = place.at, past = place.past;
  if (place.rows == 0) return;
  // Gradients that the later steps left for this step.
  const auto dcells_of = [&](int64_t step, int64_t begin) {
    if (two_steps) return g.dcells.at + step % 2 * steps.widest() * d + own_first;
    return (g.mask ? g.dkept_cells : g.dcells).at + begin * d;
  };
  float *dcells = dcells_of(t, at), *dbefore = t > 0 ? dcells_of(t - 1, past) : g.dfirst_cell.at + own_first;
  if (two_steps && place.rows_after == 0) std::fill_n(dcells, place.rows * d, 0.0f);
  if (two_steps && t > 0) std::fill_n(dbefore, place.rows_past * d, 0.0f);
  const float* first_cell = g.first_cell ? g.first_cell.at + own_first : nullptr;
  const float* before = t > 0 ? (g.mask ? g.kept_cells : g.cells).at + past * d : first_cell;
  // With a mask, the gradients of the kept states become those of the new ones.
  float *dkept = g.mask ? g.dkept_hiddens.at + at * d : nullptr, *dstate = g.dfirst_hidden.at + own_first;
  if (g.mask && t > 0) dstate = g.dkept_hiddens.at + past * d;
  const LstmCellGrad::Row<float> row{g.gates.at + at * 4 * d,
                                     g.cells.at + at * d,
                                     before,
                                     w.peepholes.at,
                                     dkept ? dkept : g.dresult.at,
                                     dcells,
                                     nullptr,
                                     g.dgates.at + at * 4 * d,
                                     dbefore};
  const StepProduct by{panels_, g.dgates.at + place.after * 4 * d, 4 * d, place.rows_after};
  each_units(c, by, d, place.rows, 4 * d * loops::kPanel, [&](int64_t i, int64_t unit, int64_t n, const float* tile) {
    UnitPlace of(i, unit, d, 4, d);
    if (g.mask) {
      const auto back = [&](float* kept, const float* direct, float* dold, const float* product) {
        run_units<KeepRowsGrad>({d}, {g.mask.at + at, kept, nullptr, direct, kept, dold}, of, n, product);
      };
      back(dkept, g.dresult.at + at * d, dstate, tile);
      back(dcells, g.dcells.at + at * d, dbefore, nullptr);
    } else {
      of.apart = steps.row(at + i) * d + unit;
    }
    run_units<LstmCellGrad>(rule, row, of, n, g.mask ? nullptr : tile);
  });
}

}  // namespace anabranch::sequence
