#include "ops/sequence/lstm_run.h"

namespace anabranch::sequence {
namespace {

// n rows from `at` on, with stride `row`.
template <class T> Slab<T> apart(Slab<T> all, int64_t at, int64_t n, int64_t width, int64_t row) {
  return all.part(at * row, n > 0 ? (n - 1) * row + width : 0);
}

}  // namespace

template <class On> void LstmRun<On>::forward(const C& c, int64_t d, const LstmWeights<T>& w, const LstmRows<T>& r) {
  rule_.units = d;
  if constexpr (kHasPanels<On>) {
    if (!w.projection && !w.turned) return panels_.forward(c, rule_, w, r);
  }
  for (int64_t t = 0; t < r.order.count(); ++t) step(c, t, w, r);
}

template <class On> void LstmRun<On>::step(const C& c, int64_t t, const LstmWeights<T>& w, const LstmRows<T>& r) {
  const int64_t d = rule_.units, p = w.p, at = r.begin(t), n = r.order.rows(t), row = r.row_hidden ? r.row_hidden : p;
  const int64_t past = t > 0 ? r.begin(t - 1) : 0;
  Slab<const T> state = r.first_hidden.rows(0, n, p), cell = r.first_cell.rows(0, n, d);
  int64_t row_state = p;
  if (t > 0) {
    state = r.mask ? r.kept_hiddens.rows(past, n, p) : apart(r.carried, past, n, p, row);
    row_state = r.mask ? p : row;
    cell = (r.mask ? r.kept_cells : r.cells).rows(past, n, d);
  }
  const Slab<T> gates = r.gates.rows(at, n, 4 * d);
  if (state) {
    (t > 0 ? by_state_ : by_first_)
        .run(c, {.m = n, .n = 4 * d, .k = p, .trans_b = w.turned, .ld_a = row_state}, state, w.state, gates, true);
  }
  const int64_t row_hidden = r.row_hidden ? r.row_hidden : d;
  const Slab<T> hidden = apart(r.hiddens, at, n, d, row_hidden), now = r.cells.rows(at, n, d);
  cell_.run(c, {gates.out(), cell.in(), w.peepholes.in(), now.out(), hidden.out(), n, row_hidden, rule_});
  if (w.projection) {
    const Slab<T> carried = r.carried.rows(at, n, p);
    by_projection_.run(c, {.m = n, .n = p, .k = d}, hidden, w.projection.weight, carried, false);
    act_.run(c, {{}, carried.out(), n, w.projection.rule});
  }
  if (!r.mask) return;
  const auto keep = [&](Slab<const T> fresh, Slab<const T> before, Slab<T> kept) {
    keep_.run(c, {r.mask.part(at, n).in(), fresh.in(), before.in(), {}, kept.rows(at, n, d).out(), {}, n, {d}});
  };
  keep(hidden, state, r.kept_hiddens);
  keep(now, cell, r.kept_cells);
}

template <class On>
void LstmRun<On>::backward(const C& c, Room& room, int64_t d, const LstmWeights<T>& w, LstmGradients<On> g) {
  rule_.units = d;
  if constexpr (kHasPanels<On>) {
    if (!w.projection && !w.turned && !g.factors) return panels_.backward(c, room, rule_, w, g);
  }
  const int64_t rows = g.rows.rows();
  if (w.projection) dhiddens_ = room.rows(g.rows.order().widest(), d);
  if (g.dresult) {
    if (!g.dcarried) g.dcarried = room.rows(rows, w.p);
    g.rows.gather(c, g.dresult, w.p, g.dcarried);
  }
  if (!g.dcells) g.dcells = room.zeros(rows, d);
  for (int64_t t = g.rows.order().count() - 1; t >= 0; --t) step_back(c, t, w, g);
}

template <class On>
void LstmRun<On>::step_back(const C& c, int64_t t, const LstmWeights<T>& w, const LstmGradients<On>& g) {
  const int64_t d = rule_.units, p = w.p, at = g.begin(t), n = g.rows.order().rows(t),
                past = t > 0 ? g.begin(t - 1) : 0;
  const int64_t row = g.row_carried ? g.row_carried : p;
  const Slab<T> dcarried = apart(g.dcarried, at, n, p, row), dcell = g.dcells.rows(at, n, d);
  Slab<const T> before = g.first_cell.rows(0, n, d);
  Slab<T> dbefore = g.dfirst_cell.rows(0, n, d), dstate = g.dfirst_hidden.rows(0, n, p);
  int64_t row_state = p;
  if (t > 0) {
    before = (g.mask ? g.kept_cells : g.cells).rows(past, n, d);
    dbefore = (g.mask ? g.dkept_cells : g.dcells).rows(past, n, d);
    dstate = g.mask ? g.dkept_hiddens.rows(past, n, p) : apart(g.dcarried, past, n, p, row);
    row_state = g.mask ? p : row;
  }
  const auto keep_back = [&](Slab<T> dkept, Slab<T> dfresh, Slab<T> dold) {
    keep_back_.run(c, {g.mask.part(at, n).in(),
                       Slab<const T>(dkept.rows(at, n, d)).in(),
                       {},
                       Slab<const T>(dfresh).in(),
                       dfresh.out(),
                       dold.out(),
                       n,
                       {d}});
  };
  if (g.mask) {
    keep_back(g.dkept_hiddens, dcarried, dstate);
    keep_back(g.dkept_cells, dcell, dbefore);
  }
  const Slab<const T> dhidden = w.projection ? through_projection(c, at, n, w, g) : dcarried;
  const Slab<T> dgates = g.dgates.rows(at, n, 4 * d);
  device::LstmRule rule = rule_;
  if (g.factors) rule.clip = 0;
  cell_back_.run(c, {g.gates.rows(at, n, 4 * d).in(), g.cells.rows(at, n, d).in(), before.in(), w.peepholes.in(),
                     dhidden.in(), Slab<const T>(dcell).in(), g.factors.rows(at, n, d).in(), dgates.out(),
                     dbefore.out(), n, w.projection ? d : row, rule});
  if (!dstate) return;
  (t > 0 ? by_state_ : by_first_)
      .run(c, {.m = n, .n = p, .k = 4 * d, .trans_b = !w.turned, .ld_c = row_state}, dgates, w.state, dstate, true);
}

template <class On>
Slab<const typename On::Number> LstmRun<On>::through_projection(const C& c, int64_t at, int64_t n,
                                                                const LstmWeights<T>& w, const LstmGradients<On>& g) {
  const int64_t d = rule_.units, p = w.p;
  const Slab<T> dcarried = g.dcarried.rows(at, n, p), part = dhiddens_.rows(0, n, d);
  act_back_.run(c, {g.carried.rows(at, n, p).in(), dcarried.out(), n, w.projection.rule});
  by_projection_.run(c, {.m = n, .n = d, .k = p, .trans_b = true}, dcarried, w.projection.weight, part, false);
  return part;
}

template class LstmRun<OnHost<float>>;
template class LstmRun<OnHost<double>>;
template class LstmRun<OnDevice<float>>;
template class LstmRun<OnDevice<double>>;

}  // namespace anabranch::sequence
