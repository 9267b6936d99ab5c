#include "ops/sequence/gru_panels.h"

namespace anabranch::sequence {
namespace {

using loops::kPanel, loops::kTileRows, loops::kUnits;

}  // namespace

void GruPanels::forward(const KernelContext& c, const Steps& steps, const Weights& w, const Forward& f) {
  const int64_t d = w.d;
  if (steps.count() > 1 || f.first) {
    of_gates_.pack(c, w.state, d, d, 2 * d, 2, d);
    of_candidate_.pack(c, w.state + 2 * d * d, d, d, d, 1, 0);
  }
  const float* before = f.first;
  for (int64_t t = 0; t < steps.count(); ++t) {
    const int64_t at = steps.begin(t), rows = steps.rows(t);
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
      }
    });
    before = states;
  }
}

void GruPanels::backward(const KernelContext& c, const Steps& steps, const Weights& w, const Backward& b) {
  const int64_t d = w.d;
  of_gates_.pack_turned(c, w.state, 2 * d, d, 2 * d);
  of_candidate_.pack_turned(c, w.state + 2 * d * d, d, d, d);
  for (int64_t t = steps.count() - 1; t >= 0; --t) {
    state_back(c, steps, w, b, t);
    reset_back(c, steps, w, b, t);
  }
  if (b.first) first_back(c, steps.widest(), w, b);
}

// Takes what comes back through the gates of the step after it together with its own.
void GruPanels::state_back(const KernelContext& c, const Steps& steps, const Weights& w, const Backward& b,
                           int64_t t) const {
  const int64_t d = w.d, at = steps.begin(t), rows = steps.rows(t), past = t > 0 ? steps.begin(t - 1) : 0;
  const int64_t after = t + 1 < steps.count() ? steps.rows(t + 1) : 0;
  const float* before = t > 0 ? b.states + past * d : b.first;
  float* dbefore = t > 0 ? b.dstates + past * d : b.dfirst;
  each_tile(c, d, kPanel, rows, 2 * d * kPanel, [&](int64_t unit, int64_t n, int64_t r, int64_t m) {
    float tile[kTileRows * kPanel];
    const int64_t with = std::clamp<int64_t>(after - r, 0, m);
    if (with > 0) of_gates_.product(b.dgates + (at + rows + r) * 3 * d, 3 * d, with, unit / kPanel, tile);
    for (int64_t i = 0; i < m; ++i) {
      const int64_t gates = (at + r + i) * 3 * d + unit, of_before = (r + i) * d + unit;
      loops::gru_state_back(w.rule, n,
                            {.tile = i < with ? tile + i * kPanel : nullptr,
                             .dstate = b.dstates + (at + r + i) * d + unit,
                             .update = b.gates + gates,
                             .candidate = b.gates + gates + 2 * d,
                             .before = before ? before + of_before : nullptr,
                             .dupdate = b.dgates + gates,
                             .dcandidate = b.dgates + gates + 2 * d,
                             .dbefore = dbefore + of_before});
    }
  });
}

void GruPanels::reset_back(const KernelContext& c, const Steps& steps, const Weights& w, const Backward& b,
                           int64_t t) const {
  const int64_t d = w.d, at = steps.begin(t), rows = steps.rows(t), past = t > 0 ? steps.begin(t - 1) : 0;
  const float* before = t > 0 ? b.states + past * d : b.first;
  float* dbefore = t > 0 ? b.dstates + past * d : b.dfirst;
  each_tile(c, d, kPanel, rows, d * kPanel, [&](int64_t unit, int64_t n, int64_t r, int64_t m) {
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

// What comes back to the state before step 0 through its gates.
void GruPanels::first_back(const KernelContext& c, int64_t rows, const Weights& w, const Backward& b) const {
  const int64_t d = w.d;
  each_tile(c, d, kPanel, rows, 2 * d * kPanel, [&](int64_t unit, int64_t n, int64_t r, int64_t m) {
    float tile[kTileRows * kPanel];
    of_gates_.product(b.dgates + r * 3 * d, 3 * d, m, unit / kPanel, tile);
    for (int64_t i = 0; i < m; ++i) add_to(tile + i * kPanel, n, b.dfirst + (r + i) * d + unit);
  });
}

}  // namespace anabranch::sequence
