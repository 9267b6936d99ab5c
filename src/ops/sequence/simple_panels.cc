#include "ops/sequence/simple_panels.h"

namespace anabranch::sequence {
namespace {

using loops::kPanel, loops::kTileRows;

}  // namespace

void SimplePanels::forward(const KernelContext& c, const Steps& steps, const Weights& w, const Forward& f) {
  panels_.pack(c, w.state, w.d, w.d, w.d, {0});
  each_band(c, steps, w.d * w.d,
            [&](const KernelContext& with, const Band& band) { forward(with, steps, band, w, f); });
}

void SimplePanels::forward(const KernelContext& c, const Steps& steps, const Band& band, const Weights& w,
                           const Forward& f) const {
  const int64_t d = w.d;
  const float* before = f.first + band.first * d;
  for (int64_t t = 0; t < steps.count(); ++t) {
    const int64_t at = band.begin(steps, t), rows = band.rows(steps, t);
    if (rows == 0) return;
    float* states = f.states + at * d;
    each_tile(c, d, kPanel, rows, d * kPanel, [&](int64_t unit, int64_t n, int64_t r, int64_t m) {
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
  const int64_t d = w.d;
  panels_.pack_turned(c, w.state, d, d, d);
  each_band(c, steps, d * d, [&](const KernelContext& with, const Band& band) {
    for (int64_t t = steps.count() - 1; t >= 0; --t) step_back(with, w, b, BandStep(steps, band, t));
  });
  panels_.add_product(c, b.dsums, d, steps.widest(), d, b.dfirst);
}

// Combines the gradients through the sums of the next step with those of this step.
void SimplePanels::step_back(const KernelContext& c, const Weights& w, const Backward& b, const BandStep& place) const {
  const int64_t d = w.d, at = place.at;
  float* dbefore = place.t > 0 && b.mask ? b.dkept + place.past * d : b.dfirst + place.first_row * d;  // with a mask
  each_tile(c, d, kPanel, place.rows, d * kPanel, [&](int64_t unit, int64_t n, int64_t r, int64_t m) {
    float tile[kTileRows * kPanel];
    const int64_t with = std::clamp<int64_t>(place.rows_after - r, 0, m);
    if (with > 0) panels_.product(b.dsums + (place.after + r) * d, d, with, unit / kPanel, tile);
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

}  // namespace anabranch::sequence
