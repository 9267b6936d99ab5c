#include "ops/sequence/simple_panels.h"

namespace anabranch::sequence {
namespace {

using loops::kPanel, loops::kTileRows;

}  // namespace

void SimplePanels::forward(const KernelContext& c, const Steps& steps, const Weights& w, const Forward& f) {
  const int64_t d = w.d;
  panels_.pack(c, w.state, d, d, d, 1, 0);
  const float* before = f.first;
  for (int64_t t = 0; t < steps.count(); ++t) {
    const int64_t at = steps.begin(t);
    float* states = f.states + at * d;
    each_tile(c, d, kPanel, steps.rows(t), d * kPanel, [&](int64_t unit, int64_t n, int64_t r, int64_t m) {
      float tile[kTileRows * kPanel];
      panels_.product(before + r * d, d, m, unit / kPanel, tile);
      for (int64_t i = 0; i < m; ++i) {
        const int64_t own = (r + i) * d + unit;
        add_to(tile + i * kPanel, n, states + own);
        activate(w.act, states + own, n);
        if (f.mask) f.mask.keep(at + r + i, states + own, before + own, n, f.kept + at * d + own);
      }
    });
    before = f.mask ? f.kept + at * d : states;
  }
}

void SimplePanels::backward(const KernelContext& c, const Steps& steps, const Weights& w, const Backward& b) {
  panels_.pack_turned(c, w.state, w.d, w.d, w.d);
  for (int64_t t = steps.count() - 1; t >= 0; --t) step_back(c, steps, w, b, t);
  first_back(c, steps.widest(), w, b);
}

// Takes what comes back through the sums of the step after it together with its own.
void SimplePanels::step_back(const KernelContext& c, const Steps& steps, const Weights& w, const Backward& b,
                             int64_t t) const {
  const int64_t d = w.d, at = steps.begin(t), rows = steps.rows(t);
  const int64_t after = t + 1 < steps.count() ? steps.rows(t + 1) : 0;
  float* dbefore = t > 0 && b.mask ? b.dkept + steps.begin(t - 1) * d : b.dfirst;  // with a mask
  each_tile(c, d, kPanel, rows, d * kPanel, [&](int64_t unit, int64_t n, int64_t r, int64_t m) {
    float tile[kTileRows * kPanel];
    const int64_t with = std::clamp<int64_t>(after - r, 0, m);
    if (with > 0) panels_.product(b.dsums + (at + rows + r) * d, d, with, unit / kPanel, tile);
    for (int64_t i = 0; i < m; ++i) {
      const int64_t own = (at + r + i) * d + unit;
      const float* back = i < with ? tile + i * kPanel : nullptr;
      float* to = b.dsums + own;
      if (b.mask) {
        b.mask.back(at + r + i, b.dkept + own, back, b.dstates + own, n, to, dbefore + (r + i) * d + unit);
      } else {
        std::copy_n(b.dstates + own, n, to);
        if (back) add_to(back, n, to);
      }
      act_grad(w.act, b.states + own, to, n);
    }
  });
}

// What comes back to the state before step 0.
void SimplePanels::first_back(const KernelContext& c, int64_t rows, const Weights& w, const Backward& b) const {
  const int64_t d = w.d;
  each_tile(c, d, kPanel, rows, d * kPanel, [&](int64_t unit, int64_t n, int64_t r, int64_t m) {
    float tile[kTileRows * kPanel];
    panels_.product(b.dsums + r * d, d, m, unit / kPanel, tile);
    for (int64_t i = 0; i < m; ++i) add_to(tile + i * kPanel, n, b.dfirst + (r + i) * d + unit);
  });
}

}  // namespace anabranch::sequence
