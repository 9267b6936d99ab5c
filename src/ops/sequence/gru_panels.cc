#include "ops/sequence/gru_panels.h"

namespace anabranch::sequence {
namespace {

using loops::kPanel, loops::kTileRows, loops::kUnits;

}  // namespace

void GruPanels::forward(const KernelContext& c, const Steps& steps, const Weights& w, const Forward& f) {
  const int64_t d = w.d;
  if (steps.count() > 1 || f.first) {
    of_gates_.pack(c, w.gates, d, d, w.ld_gates, {0, d});
    of_candidate_.pack(c, w.candidate, d, d, w.ld_candidate, {0});
  }
  each_band(c, steps, 3 * d * d,
            [&](const KernelContext& with, const Band& band) { forward(with, steps, band, w, f); });
}

void GruPanels::forward(const KernelContext& c, const Steps& steps, const Band& band, const Weights& w,
                        const Forward& f) const {
  const int64_t d = w.d;
  const float* before = f.first ? f.first + band.first * d : nullptr;
  for (int64_t t = 0; t < steps.count(); ++t) {
    const int64_t at = band.begin(steps, t), rows = band.rows(steps, t);
    if (rows == 0) return;
    float *gates = f.gates + at * 3 * d, *left = f.left + at * d, *states = f.states + at * d;
    each_tile(c, d, kUnits, rows, d * kPanel, [&](int64_t unit, int64_t n, int64_t r, int64_t m) {
      float tile[kTileRows * kPanel];
      if (before) of_gates_.product(before + r * d, d, m, unit / kUnits, tile);
      for (int64_t i = 0; i < m; ++i) {
        float* g = gates + (r + i) * 3 * d + unit;
        const int64_t own = (r + i) * d + unit;
        loops::gru_gates(w.rule, n,
                         {.update_tile = before ? tile + i * kPanel : nullptr,
                          .reset_tile = before ? tile + i * kPanel + kUnits : nullptr,
                          .before = before ? before + own : nullptr,
                          .update = g,
                          .reset = g + d,
                          .left = left + own});
      }
    });
    each_tile(c, d, kPanel, rows, d * kPanel, [&](int64_t unit, int64_t n, int64_t r, int64_t m) {
      float tile[kTileRows * kPanel];
      if (before) of_candidate_.product(left + r * d, d, m, unit / kPanel, tile);
      for (int64_t i = 0; i < m; ++i) {
        float* g = gates + (r + i) * 3 * d + unit;
        const int64_t own = (r + i) * d + unit;
        loops::gru_state(w.rule, n,
                         {.tile = before ? tile + i * kPanel : nullptr,
                          .update = g,
                          .before = before ? before + own : nullptr,
                          .candidate = g + 2 * d,
                          .state = states + own});
        if (f.mask) f.mask.keep(at + r + i, states + own, before + own, n, f.kept + at * d + own);
      }
    });
    before = f.mask ? f.kept + at * d : states;
  }
}

void GruPanels::backward(const KernelContext& c, const Steps& steps, const Weights& w, const Backward& b) {
  const int64_t d = w.d;
  of_gates_.pack_turned(c, w.gates, 2 * d, d, w.ld_gates);
  of_candidate_.pack_turned(c, w.candidate, d, d, w.ld_candidate);
  each_band(c, steps, 3 * d * d, [&](const KernelContext& with, const Band& band) {
    for (int64_t t = steps.count() - 1; t >= 0; --t) {
      const BandStep at(steps, band, t);
      state_back(with, w, b, at);
      reset_back(with, w, b, at);
    }
  });
  if (b.first) of_gates_.add_product(c, b.dgates, 3 * d, steps.widest(), d, b.dfirst);  // through the gates of step 0
}

// Combines the gradients through the gates of the next step with those of this step.
void GruPanels::state_back(const KernelContext& c, const Weights& w, const Backward& b, const BandStep& place) const {
  const int64_t d = w.d, at = place.at;
  const float* before = b.before(place.t, place.past, place.first_row, d);
  float* dbefore = b.dbefore(place.t, place.past, place.first_row, d);
  each_tile(c, d, kPanel, place.rows, 2 * d * kPanel, [&](int64_t unit, int64_t n, int64_t r, int64_t m) {
    float tile[kTileRows * kPanel], dstate[kPanel];
    const int64_t with = std::clamp<int64_t>(place.rows_after - r, 0, m);
    if (with > 0) of_gates_.product(b.dgates + (place.after + r) * 3 * d, 3 * d, with, unit / kPanel, tile);
    for (int64_t i = 0; i < m; ++i) {
      const int64_t gates = (at + r + i) * 3 * d + unit, of_before = (r + i) * d + unit, own = (at + r + i) * d + unit;
      loops::GruStateBack row{.tile = i < with ? tile + i * kPanel : nullptr,
                              .dstate = b.dstates + own,
                              .update = b.gates + gates,
                              .candidate = b.gates + gates + 2 * d,
                              .before = before ? before + of_before : nullptr,
                              .dupdate = b.dgates + gates,
                              .dcandidate = b.dgates + gates + 2 * d,
                              .dbefore = dbefore + of_before};
      if (b.mask) {
        b.mask.back(at + r + i, b.dkept + own, row.tile, row.dstate, n, dstate, row.dbefore);
        row.tile = nullptr;
        row.dstate = dstate;
      }
      loops::gru_state_back(w.rule, n, row);
    }
  });
}

void GruPanels::reset_back(const KernelContext& c, const Weights& w, const Backward& b, const BandStep& place) const {
  const int64_t d = w.d, at = place.at;
  const float* before = b.before(place.t, place.past, place.first_row, d);
  float* dbefore = b.dbefore(place.t, place.past, place.first_row, d);
  each_tile(c, d, kPanel, place.rows, d * kPanel, [&](int64_t unit, int64_t n, int64_t r, int64_t m) {
    float tile[kTileRows * kPanel];
    const float* from = b.dgates + (at + r) * 3 * d + 2 * d;
    if (before) of_candidate_.product(from, 3 * d, m, unit / kPanel, tile);
    for (int64_t i = 0; i < m; ++i) {
      const int64_t gates = (at + r + i) * 3 * d + d + unit, of_before = (r + i) * d + unit;
      loops::gru_reset_back(w.rule, n,
                            {.tile = before ? tile + i * kPanel : nullptr,
                             .reset = b.gates + gates,
                             .before = before ? before + of_before : nullptr,
                             .dreset = b.dgates + gates,
                             .dbefore = dbefore + of_before});
    }
  });
}

}  // namespace anabranch::sequence
