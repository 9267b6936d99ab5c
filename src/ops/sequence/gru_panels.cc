#include "ops/sequence/gru_panels.h"

namespace anabranch::sequence {

using loops::run_units, loops::kPanel;

void GruPanels::forward(const KernelContext& c, const device::GruRule& rule, const GruWeights<float>& w,
                        const GruRows<float>& r) {
  const int64_t d = rule.units;
  if (r.order.count() > 1 || r.first) {
    of_gates_.pack(c, w.gates.at, d, d, w.row_gates, {0, d});
    of_candidate_.pack(c, w.candidate.at, d, d, w.row_candidate, {0});
  }
  each_band(c, r.order, 3 * d * d, [&](const KernelContext& with, const Band& band) { forward(with, band, rule, r); });
}

void GruPanels::forward(const KernelContext& c, const Band& band, const device::GruRule& rule,
                        const GruRows<float>& r) const {
  const int64_t d = rule.units;
  const float* before = r.first ? r.first.at + band.first * d : nullptr;
  for (int64_t t = 0; t < r.order.count(); ++t) {
    const int64_t at = band.begin(r.order, t), rows = band.rows(r.order, t), own = at * d;
    if (rows == 0) return;
    const GruGates::Row<float> row{r.gates.at + 3 * own, before, r.left.at + own, r.states.at + own};
    const StepProduct gates{of_gates_, before, d, rows, loops::kUnits};
    each_units(c, gates, d, rows, d * kPanel, [&](int64_t i, int64_t unit, int64_t n, const float* tile) {
      run_units<GruGates>(rule, row, UnitPlace(i, unit, d, 3, d), n, tile);
    });
    const StepProduct candidate{of_candidate_, before ? row.left : nullptr, d, rows};
    each_units(c, candidate, d, rows, d * kPanel, [&](int64_t i, int64_t unit, int64_t n, const float* tile) {
      const UnitPlace of(i, unit, d, 3, d);
      run_units<GruState>(rule, row, of, n, tile);
      if (!r.mask) return;
      run_units<KeepRows>({d}, {r.mask.at + at, row.state, before, nullptr, r.kept.at + own, nullptr}, of, n, nullptr);
    });
    before = (r.mask ? r.kept : r.states).at + own;
  }
}

void GruPanels::backward(const KernelContext& c, const device::GruRule& rule, const GruWeights<float>& w,
                         const GruGradients<float>& g) {
  const int64_t d = rule.units;
  of_gates_.pack_turned(c, w.gates.at, 2 * d, d, w.row_gates);
  of_candidate_.pack_turned(c, w.candidate.at, d, d, w.row_candidate);
  each_band(c, g.order, 3 * d * d, [&](const KernelContext& with, const Band& band) {
    for (int64_t t = g.order.count() - 1; t >= 0; --t) step_back(with, rule, g, BandStep(g.order, band, t));
  });
  if (g.has_first) of_gates_.add_product(c, g.dgates.at, 3 * d, g.order.widest(), d, g.dfirst.at);
}

// Combines the gradients through the gates of the next step with those of this step; then through the reset gates.
void GruPanels::step_back(const KernelContext& c, const device::GruRule& rule, const GruGradients<float>& g,
                          const BandStep& place) const {
  const int64_t d = rule.units, at = place.at, t = place.t, rows = place.rows, own = at * d;
  if (rows == 0) return;
  const bool preceded = t > 0 || g.has_first;
  float* dbefore = t > 0 ? (g.mask ? g.dkept : g.dstates).at + place.past * d : g.dfirst.at;
  if (t == 0 && dbefore) dbefore += place.first_row * d;
  float* dkept = g.mask ? g.dkept.at + own : nullptr;
  const GruStateGrad::Row<float> row{g.gates.at + 3 * own,
                                     preceded ? g.before.at + own : nullptr,
                                     dkept ? dkept : g.dstates.at + own,
                                     nullptr,
                                     g.dgates.at + 3 * own,
                                     dbefore};
  const StepProduct gates{of_gates_, g.dgates.at + place.after * 3 * d, 3 * d, place.rows_after};
  each_units(c, gates, d, rows, 2 * d * kPanel, [&](int64_t i, int64_t unit, int64_t n, const float* tile) {
    const UnitPlace of(i, unit, d, 3, d);
    if (dkept) {
      run_units<KeepRowsGrad>({d}, {g.mask.at + at, dkept, nullptr, g.dstates.at + own, dkept, dbefore}, of, n, tile);
    }
    run_units<GruStateGrad>(rule, row, of, n, dkept ? nullptr : tile);
  });
  if (!preceded) return;
  const StepProduct candidate{of_candidate_, row.dgates + 2 * d, 3 * d, rows};
  each_units(c, candidate, d, rows, d * kPanel, [&](int64_t i, int64_t unit, int64_t n, const float* tile) {
    run_units<GruResetGrad>(rule, row, UnitPlace(i, unit, d, 3, d), n, tile);
  });
}

}  // namespace anabranch::sequence
