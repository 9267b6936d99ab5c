#include "ops/sequence/queued_gru.h"

namespace anabranch::sequence {

template <class T>
void QueuedGru<T>::forward(const DeviceContext& c, int64_t d, const GruWeights<T>& w, const GruRows<T>& r) {
  for (int64_t t = 0; t < r.order.count(); ++t) {
    const int64_t at = r.order.begin(t), n = r.order.rows(t);
    Slab<const T> before = r.first.rows(0, n, d);
    if (t > 0) before = (r.kept ? r.kept.states : r.states).rows(r.order.begin(t - 1), n, d);
    const Slab<T> state = r.states.rows(at, n, d);
    step(c, d, n, w, r.gates.rows(at, n, 3 * d), before, r.left.rows(at, n, d), state);
    if (r.kept) keep_.forward(c, at, n, d, state, before, r.kept);
  }
}

template <class T>
void QueuedGru<T>::step(const DeviceContext& c, int64_t d, int64_t n, const GruWeights<T>& w, Slab<T> gates,
                        Slab<const T> before, Slab<T> left, Slab<T> state) {
  if (before) {
    by_gates_.run(c, {.m = n, .n = 2 * d, .k = d, .ld_b = w.row_gates, .ld_c = 3 * d}, before, w.gates, gates, true);
  }
  const device::GruArgs a{gates.out(),
                          before.in(),
                          left.out(),
                          state.out(),
                          n,
                          d,
                          static_cast<int32_t>(rule_.gate),
                          static_cast<int32_t>(rule_.candidate),
                          rule_.origin,
                          0};
  c.launch(gates_, a);
  if (before) {
    by_candidate_.run(c, {.m = n, .n = d, .k = d, .ld_b = w.row_candidate, .ld_c = 3 * d}, left, w.candidate,
                      gates.from(2 * d), true);
  }
  c.launch(state_, a);
}

template <class T>
void QueuedGru<T>::backward(const DeviceContext& c, int64_t d, const GruWeights<T>& w, const GruGradients<T>& r) {
  part_rows_ = room_for<T>(c, part_, r.order.widest(), d);
  for (int64_t t = r.order.count() - 1; t >= 0; --t) step_back(c, d, t, w, r);
}

template <class T>
void QueuedGru<T>::step_back(const DeviceContext& c, int64_t d, int64_t t, const GruWeights<T>& w,
                             const GruGradients<T>& r) {
  const int64_t at = r.order.begin(t), n = r.order.rows(t);
  const bool preceded = t > 0 || r.has_first;
  Slab<T> dbefore = r.dfirst.rows(0, n, d);
  if (t > 0) dbefore = (r.dkept ? r.dkept.dstates : r.dstates).rows(r.order.begin(t - 1), n, d);
  const Slab<T> dstate = r.dstates.rows(at, n, d), dgates = r.dgates.rows(at, n, 3 * d),
                dleft = part_rows_.rows(0, n, d);
  if (r.dkept) keep_.backward(c, at, n, d, r.dkept, dstate, dbefore);
  device::GruGradArgs a{};
  a.gates = r.gates.rows(at, n, 3 * d).in();
  if (preceded) a.before = r.before.rows(at, n, d).in();
  a.dstate = Slab<const T>(dstate).in();
  a.dgates = dgates.out();
  a.dbefore = dbefore.out();
  a.rows = n;
  a.units = d;
  a.gate = static_cast<int32_t>(rule_.gate);
  a.candidate = static_cast<int32_t>(rule_.candidate);
  a.origin = rule_.origin;
  c.launch(state_back_, a);
  if (!preceded) return;
  by_candidate_.run(c, {.m = n, .n = d, .k = d, .trans_b = true, .ld_a = 3 * d, .ld_b = w.row_candidate},
                    dgates.from(2 * d), w.candidate, dleft, false);
  a.dleft = Slab<const T>(dleft).in();
  c.launch(reset_back_, a);
  by_gates_.run(c, {.m = n, .n = d, .k = 2 * d, .trans_b = true, .ld_a = 3 * d, .ld_b = w.row_gates}, dgates, w.gates,
                dbefore, true);
}

template <class T>
void QueuedGru<T>::backward_weight(const DeviceContext& c, int64_t rows, int64_t d, Slab<const T> before,
                                   Slab<const T> left, Slab<const T> dgates, const GruWeights<T>& w, Slab<T> to) {
  const int64_t candidate = w.candidate.at - w.gates.at;
  to_gates_.run(c, {.m = d, .n = 2 * d, .k = rows, .trans_a = true, .ld_b = 3 * d, .ld_c = w.row_gates}, before, dgates,
                to, false);
  to_candidate_.run(c, {.m = d, .n = d, .k = rows, .trans_a = true, .ld_b = 3 * d, .ld_c = w.row_candidate}, left,
                    dgates.from(2 * d), to.from(candidate), false);
}

template class QueuedGru<float>;
template class QueuedGru<double>;

}  // namespace anabranch::sequence
