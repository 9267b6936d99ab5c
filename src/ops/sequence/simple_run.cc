#include "ops/sequence/simple_run.h"

namespace anabranch::sequence {

using loops::run_units, loops::kPanel;

template <class On> void SimpleRun<On>::forward(const C& c, int64_t d, Slab<const T> weight, const SimpleRows<T>& r) {
  rule_.units = d;
  if constexpr (kHasPanels<On>) {
    panels_.pack(c, weight.at, d, d, d, {0});
    return each_band(c, r.order, d * d, [&](const KernelContext& with, const Band& b) { forward_band(with, b, r); });
  }
  for (int64_t t = 0; t < r.order.count(); ++t) {
    const int64_t at = r.order.begin(t), n = r.order.rows(t);
    Slab<const T> before = r.first.rows(0, n, d);
    if (t > 0) before = (r.mask ? r.kept : r.states).rows(r.order.begin(t - 1), n, d);
    const Slab<T> now = r.states.rows(at, n, d);
    by_state_.run(c, {.m = n, .n = d, .k = d}, before, weight, now, true);
    act_.run(c, {{}, now.out(), n, rule_});
    if (!r.mask) continue;
    keep_.run(
        c,
        {r.mask.part(at, n).in(), Slab<const T>(now).in(), before.in(), {}, r.kept.rows(at, n, d).out(), {}, n, {d}});
  }
}

template <class On>
void SimpleRun<On>::forward_band(const KernelContext& c, const Band& band, const SimpleRows<float>& r) const {
  const int64_t d = rule_.units;
  const float* before = r.first.at + band.first * d;
  for (int64_t t = 0; t < r.order.count(); ++t) {
    const int64_t at = band.begin(r.order, t), rows = band.rows(r.order, t);
    if (rows == 0) return;
    float* states = r.states.at + at * d;
    each_units(c, {panels_, before, d, rows}, d, rows, d * kPanel,
               [&](int64_t i, int64_t unit, int64_t n, const float* tile) {
                 const UnitPlace of(i, unit, d, 1, d);
                 run_units<ClippedAct>(rule_, {nullptr, states}, of, n, tile);
                 if (!r.mask) return;
                 run_units<KeepRows>({d}, {r.mask.at + at, states, before, nullptr, r.kept.at + at * d, nullptr}, of, n,
                                     nullptr);
               });
    before = r.mask ? r.kept.at + at * d : states;
  }
}

template <class On>
void SimpleRun<On>::backward(const C& c, int64_t d, Slab<const T> weight, const SimpleGradients<T>& g) {
  rule_.units = d;
  if constexpr (kHasPanels<On>) {
    panels_.pack_turned(c, weight.at, d, d, d);
    each_band(c, g.order, d * d, [&](const KernelContext& with, const Band& band) {
      for (int64_t t = g.order.count() - 1; t >= 0; --t) band_back(with, g, BandStep(g.order, band, t));
    });
    return panels_.add_product(c, g.dsums.at, d, g.order.widest(), d, g.dfirst.at);
  }
  for (int64_t t = g.order.count() - 1; t >= 0; --t) {
    const int64_t at = g.order.begin(t), n = g.order.rows(t);
    Slab<T> dbefore = g.dfirst.rows(0, n, d);
    if (t > 0) dbefore = (g.mask ? g.dkept : g.dsums).rows(g.order.begin(t - 1), n, d);
    const Slab<T> now = g.dsums.rows(at, n, d);
    if (g.mask) {
      keep_back_.run(c, {g.mask.part(at, n).in(),
                         Slab<const T>(g.dkept.rows(at, n, d)).in(),
                         {},
                         Slab<const T>(now).in(),
                         now.out(),
                         dbefore.out(),
                         n,
                         {d}});
    }
    act_back_.run(c, {g.states.rows(at, n, d).in(), now.out(), n, rule_});
    by_state_.run(c, {.m = n, .n = d, .k = d, .trans_b = true}, now, weight, dbefore, true);
  }
}

// Combines the gradients through the sums of the next step with those of this step.
template <class On>
void SimpleRun<On>::band_back(const KernelContext& c, const SimpleGradients<float>& g, const BandStep& place) const {
  const int64_t d = rule_.units, at = place.at;
  float* dbefore = place.t > 0 && g.mask ? g.dkept.at + place.past * d : g.dfirst.at + place.first_row * d;
  float* dsums = g.dsums.at + at * d;
  const StepProduct by{panels_, g.dsums.at + place.after * d, d, place.rows_after};
  each_units(c, by, d, place.rows, d * kPanel, [&](int64_t i, int64_t unit, int64_t n, const float* tile) {
    const UnitPlace of(i, unit, d, 1, d);
    if (g.mask) {
      run_units<KeepRowsGrad>({d}, {g.mask.at + at, g.dkept.at + at * d, nullptr, dsums, dsums, dbefore}, of, n, tile);
    }
    run_units<ClippedActGrad>(rule_, {g.states.at + at * d, dsums}, of, n, g.mask ? nullptr : tile);
  });
}

template class SimpleRun<OnHost<float>>;
template class SimpleRun<OnDevice<float>>;

}  // namespace anabranch::sequence
