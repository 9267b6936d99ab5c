#include "ops/sequence/queued_lstm.h"

namespace anabranch::sequence {
namespace {

// n rows from `at` on, with stride `row`.
template <class T> Slab<T> apart(Slab<T> all, int64_t at, int64_t n, int64_t width, int64_t row) {
  return all.part(at * row, n > 0 ? (n - 1) * row + width : 0);
}

}  // namespace

template <class T>
void QueuedLstm<T>::forward(const DeviceContext& c, int64_t d, const LstmWeights<T>& w, const LstmRows<T>& r) {
  rule_.units = d;
  for (int64_t t = 0; t < r.order.count(); ++t) step(c, t, w, r);
}

template <class T>
void QueuedLstm<T>::step(const DeviceContext& c, int64_t t, const LstmWeights<T>& w, const LstmRows<T>& r) {
  const int64_t d = rule_.units, p = w.p, at = r.begin(t), n = r.order.rows(t), row = r.row_hidden ? r.row_hidden : p;
  const int64_t past = t > 0 ? r.begin(t - 1) : 0;
  Slab<const T> state = r.first_hidden.rows(0, n, p), cell = r.first_cell.rows(0, n, d);
  int64_t row_state = p;
  if (t > 0) {
    const bool kept = static_cast<bool>(r.kept_hiddens);
    state = kept ? r.kept_hiddens.states.rows(past, n, p) : apart(r.carried, past, n, p, row);
    row_state = kept ? p : row;
    cell = (r.kept_cells ? r.kept_cells.states : r.cells).rows(past, n, d);
  }
  const Slab<T> gates = r.gates.rows(at, n, 4 * d);
  if (state) {
    (t > 0 ? by_state_ : by_first_)
        .run(c, {.m = n, .n = 4 * d, .k = p, .trans_b = w.turned, .ld_a = row_state}, state, w.state, gates, true);
  }
  const int64_t row_hidden = r.row_hidden ? r.row_hidden : d;
  const Slab<T> hidden = apart(r.hiddens, at, n, d, row_hidden), now = r.cells.rows(at, n, d);
  c.launch(cell_, device::LstmCellArgs{gates.out(), cell.in(), w.peepholes.in(), now.out(), hidden.out(), n, row_hidden,
                                       rule_});
  if (w.projection) project(c, at, n, w, r);
  if (r.kept_hiddens) keep_.forward(c, at, n, d, hidden, state, r.kept_hiddens);
  if (r.kept_cells) keep_.forward(c, at, n, d, now, cell, r.kept_cells);
}

template <class T>
void QueuedLstm<T>::project(const DeviceContext& c, int64_t at, int64_t n, const LstmWeights<T>& w,
                            const LstmRows<T>& r) {
  const int64_t d = rule_.units, p = w.p;
  const Slab<T> carried = r.carried.rows(at, n, p);
  by_projection_.run(c, {.m = n, .n = p, .k = d}, r.hiddens.rows(at, n, d), w.projection.weight, carried, false);
  device::ClippedActArgs a{};
  a.x = carried.out();
  a.n = n * p;
  a.clip = w.projection.clip;
  a.act = static_cast<int32_t>(w.projection.act);
  c.launch(act_, a);
}

template <class T>
void QueuedLstm<T>::backward(const DeviceContext& c, int64_t d, const LstmWeights<T>& w, const LstmGradients<T>& r) {
  rule_.units = d;
  if (w.projection) part_rows_ = room_for<T>(c, part_, r.order.widest(), d);
  for (int64_t t = r.order.count() - 1; t >= 0; --t) step_back(c, t, w, r);
}

template <class T>
void QueuedLstm<T>::step_back(const DeviceContext& c, int64_t t, const LstmWeights<T>& w, const LstmGradients<T>& r) {
  const int64_t d = rule_.units, p = w.p, at = r.begin(t), n = r.order.rows(t), past = t > 0 ? r.begin(t - 1) : 0;
  const int64_t row = r.row_carried ? r.row_carried : p;
  const Slab<T> dcarried = apart(r.dcarried, at, n, p, row), dcell = r.dcells.rows(at, n, d);
  Slab<const T> before = r.first_cell.rows(0, n, d);
  Slab<T> dbefore = r.dfirst_cell.rows(0, n, d), dstate = r.dfirst_hidden.rows(0, n, p);
  int64_t row_state = p;
  if (t > 0) {
    before = (r.kept_cells ? r.kept_cells : r.cells).rows(past, n, d);
    dbefore = (r.dkept_cells ? r.dkept_cells.dstates : r.dcells).rows(past, n, d);
    const bool kept = static_cast<bool>(r.dkept_hiddens);
    dstate = kept ? r.dkept_hiddens.dstates.rows(past, n, p) : apart(r.dcarried, past, n, p, row);
    row_state = kept ? p : row;
  }
  if (r.dkept_hiddens) keep_.backward(c, at, n, d, r.dkept_hiddens, dcarried, dstate);
  if (r.dkept_cells) keep_.backward(c, at, n, d, r.dkept_cells, dcell, dbefore);
  const Slab<const T> dhidden = w.projection ? through_projection(c, at, n, w, r) : dcarried;
  const Slab<T> dgates = r.dgates.rows(at, n, 4 * d);
  c.launch(cell_back_, device::LstmCellGradArgs{r.gates.rows(at, n, 4 * d).in(), r.cells.rows(at, n, d).in(),
                                                before.in(), w.peepholes.in(), dhidden.in(), Slab<const T>(dcell).in(),
                                                dgates.out(), dbefore.out(), n, w.projection ? d : row, rule_});
  if (!dstate) return;
  (t > 0 ? by_state_ : by_first_)
      .run(c, {.m = n, .n = p, .k = 4 * d, .trans_b = !w.turned, .ld_c = row_state}, dgates, w.state, dstate, true);
}

template <class T>
Slab<const T> QueuedLstm<T>::through_projection(const DeviceContext& c, int64_t at, int64_t n, const LstmWeights<T>& w,
                                                const LstmGradients<T>& r) {
  const int64_t d = rule_.units, p = w.p;
  const Slab<T> dcarried = r.dcarried.rows(at, n, p), part = part_rows_.rows(0, n, d);
  device::ClippedActArgs a{};
  a.y = r.carried.rows(at, n, p).in();
  a.x = dcarried.out();
  a.n = n * p;
  a.clip = w.projection.clip;
  a.act = static_cast<int32_t>(w.projection.act);
  c.launch(act_back_, a);
  by_projection_.run(c, {.m = n, .n = d, .k = p, .trans_b = true}, dcarried, w.projection.weight, part, false);
  return part;
}

template class QueuedLstm<float>;
template class QueuedLstm<double>;

}  // namespace anabranch::sequence
