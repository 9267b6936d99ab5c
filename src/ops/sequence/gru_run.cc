#include "ops/sequence/gru_run.h"

namespace anabranch::sequence {

template <class On> void GruRun<On>::forward(const C& c, int64_t d, const GruWeights<T>& w, const GruRows<T>& r) {
  rule_.units = d;
  if constexpr (kHasPanels<On>) {
    if (packs_) return panels_.forward(c, rule_, w, r);
  }
  for (int64_t t = 0; t < r.order.count(); ++t) step(c, t, w, r);
}

template <class On> void GruRun<On>::step(const C& c, int64_t t, const GruWeights<T>& w, const GruRows<T>& r) {
  const int64_t d = rule_.units, at = r.order.begin(t), n = r.order.rows(t);
  Slab<const T> before = r.first.rows(0, n, d);
  if (t > 0) before = (r.mask ? r.kept : r.states).rows(r.order.begin(t - 1), n, d);
  const Slab<T> gates = r.gates.rows(at, n, 3 * d), left = r.left.rows(at, n, d), state = r.states.rows(at, n, d);
  if (before) {
    by_gates_.run(c, {.m = n, .n = 2 * d, .k = d, .ld_b = w.row_gates, .ld_c = 3 * d}, before, w.gates, gates, true);
  }
  const device::GruArgs a{gates.out(), before.in(), left.out(), state.out(), n, rule_};
  gates_.run(c, a);
  if (before) {
    by_candidate_.run(c, {.m = n, .n = d, .k = d, .ld_b = w.row_candidate, .ld_c = 3 * d}, left, w.candidate,
                      gates.from(2 * d), true);
  }
  state_.run(c, a);
  if (!r.mask) return;
  keep_.run(
      c,
      {r.mask.part(at, n).in(), Slab<const T>(state).in(), before.in(), {}, r.kept.rows(at, n, d).out(), {}, n, {d}});
}

template <class On>
void GruRun<On>::backward(const C& c, typename On::Room& room, int64_t d, const GruWeights<T>& w,
                          const GruGradients<T>& g) {
  rule_.units = d;
  if constexpr (kHasPanels<On>) {
    if (packs_) return panels_.backward(c, rule_, w, g);
  }
  const Slab<T> dleft = room.rows(g.order.widest(), d);
  for (int64_t t = g.order.count() - 1; t >= 0; --t) step_back(c, t, w, g, dleft);
}

template <class On>
void GruRun<On>::step_back(const C& c, int64_t t, const GruWeights<T>& w, const GruGradients<T>& g, Slab<T> dleft) {
  const int64_t d = rule_.units, at = g.order.begin(t), n = g.order.rows(t);
  const bool preceded = t > 0 || g.has_first;
  const Slab<T> dbefore = g.dbefore(t, n, d), dgates = g.dgates.rows(at, n, 3 * d), own = dleft.rows(0, n, d);
  const Slab<T> dstate = g.dstates.rows(at, n, d);
  if (g.mask) {
    keep_back_.run(c, {g.mask.part(at, n).in(),
                       Slab<const T>(g.dkept.rows(at, n, d)).in(),
                       {},
                       Slab<const T>(dstate).in(),
                       dstate.out(),
                       dbefore.out(),
                       n,
                       {d}});
  }
  device::GruGradArgs a{
      g.gates.rows(at, n, 3 * d).in(), {}, Slab<const T>(dstate).in(), {}, dgates.out(), dbefore.out(), n, rule_};
  if (preceded) a.before = g.before.rows(at, n, d).in();
  state_back_.run(c, a);
  if (!preceded) return;
  by_candidate_.run(c, {.m = n, .n = d, .k = d, .trans_b = true, .ld_a = 3 * d, .ld_b = w.row_candidate},
                    dgates.from(2 * d), w.candidate, own, false);
  a.dleft = Slab<const T>(own).in();
  reset_back_.run(c, a);
  by_gates_.run(c, {.m = n, .n = d, .k = 2 * d, .trans_b = true, .ld_a = 3 * d, .ld_b = w.row_gates}, dgates, w.gates,
                dbefore, true);
}

template <class On>
void GruRun<On>::backward_weight(const C& c, int64_t rows, int64_t d, Slab<const T> before, Slab<const T> left,
                                 Slab<const T> dgates, const GruWeights<T>& w, Slab<T> to) {
  const int64_t candidate = w.candidate.at - w.gates.at;
  to_gates_.run(c, {.m = d, .n = 2 * d, .k = rows, .trans_a = true, .ld_b = 3 * d, .ld_c = w.row_gates}, before, dgates,
                to, false);
  to_candidate_.run(c, {.m = d, .n = d, .k = rows, .trans_a = true, .ld_b = 3 * d, .ld_c = w.row_candidate}, left,
                    dgates.from(2 * d), to.from(candidate), false);
}

template class GruRun<OnHost<float>>;
template class GruRun<OnHost<double>>;
template class GruRun<OnDevice<float>>;
template class GruRun<OnDevice<double>>;

}  // namespace anabranch::sequence
