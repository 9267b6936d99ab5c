// The formulas of the kernels in cells.h, for numbers N that `at` reads and writes: AB_CELL_FN marks functions. at.of()
// is zero where an address is missing; at.sum() adds the products of a tile, if there are any. Included within a
// namespace, by cell_numbers.h and, for every instruction set, by cell_loops.cc.

template <class A, class T>
AB_CELL_FN void compute(LstmCell, const A& at, const device::LstmRule& rule, const LstmCell::Row<T>& r,
                        const UnitPlace& p) {
  const Act gate = act_of(rule.gate);
  const int64_t d = rule.units, c = p.wide + rule.places[0] * d, i = p.wide + rule.places[1] * d,
                f = p.wide + rule.places[2] * d, o = p.wide + rule.places[3] * d;
  auto candidate = at.sum(r.gates, c, 0), in = at.sum(r.gates, i, 1), forget = at.sum(r.gates, f, 2);
  auto out = at.sum(r.gates, o, 3);
  const auto before = at.of(r.before, p.own);
  if (rule.forget_bias != 0) forget = forget + at.number(static_cast<T>(rule.forget_bias));
  if (r.peepholes && r.before) {
    in = in + at.of(r.peepholes, p.unit) * before;
    forget = forget + at.of(r.peepholes, d + p.unit) * before;
  }
  candidate = active(act_of(rule.candidate), candidate);
  in = active(gate, in);
  forget = active(gate, forget);
  const auto kept = r.before ? forget * before : at.number(0);
  const auto cell = clipped(static_cast<T>(rule.clip), in * candidate + kept);
  if (r.peepholes) out = out + at.of(r.peepholes, 2 * d + p.unit) * cell;
  out = active(gate, out);
  at.put(candidate, r.gates, c);
  at.put(in, r.gates, i);
  at.put(forget, r.gates, f);
  at.put(out, r.gates, o);
  at.put(cell, r.cell, p.own);
  at.put(active(act_of(rule.cell), cell) * out, r.hidden, p.apart);
}

template <class A, class T>
AB_CELL_FN void compute(LstmCellGrad, const A& at, const device::LstmRule& rule, const LstmCellGrad::Row<T>& r,
                        const UnitPlace& p) {
  const Act gate = act_of(rule.gate);
  const int64_t d = rule.units, c = p.wide + rule.places[0] * d, i = p.wide + rule.places[1] * d,
                f = p.wide + rule.places[2] * d, o = p.wide + rule.places[3] * d;
  const auto candidate = at.of(r.gates, c), in = at.of(r.gates, i), forget = at.of(r.gates, f);
  const auto out = at.of(r.gates, o), cell = at.of(r.cell, p.own), before = at.of(r.before, p.own);
  const auto dhidden = at.sum(r.dhidden, p.apart, 0);
  const auto shown = active(act_of(rule.cell), cell);
  const auto dout = slope(gate, out, dhidden * shown);
  auto dcell = at.of(r.dcell, p.own) + slope(act_of(rule.cell), shown, dhidden * out);
  if (r.peepholes) dcell = dcell + dout * at.of(r.peepholes, 2 * d + p.unit);
  dcell = clipped_slope(static_cast<T>(rule.clip), cell, dcell);
  if (r.factors) dcell = dcell * at.of(r.factors, p.own);
  const auto din = slope(gate, in, dcell * candidate);
  const auto dforget = r.before ? slope(gate, forget, dcell * before) : at.number(0);
  at.put(slope(act_of(rule.candidate), candidate, dcell * in), r.dgates, c);
  at.put(din, r.dgates, i);
  at.put(dforget, r.dgates, f);
  at.put(dout, r.dgates, o);
  if (!r.dbefore) return;
  auto dbefore = at.of(r.dbefore, p.own) + dcell * forget;
  if (r.peepholes) {
    dbefore = dbefore + din * at.of(r.peepholes, p.unit);
    dbefore = dbefore + dforget * at.of(r.peepholes, d + p.unit);
  }
  at.put(dbefore, r.dbefore, p.own);
}

template <class A, class T>
AB_CELL_FN void compute(GruGates, const A& at, const device::GruRule& rule, const GruGates::Row<T>& r,
                        const UnitPlace& p) {
  const auto update = active(act_of(rule.gate), at.sum(r.gates, p.wide, 0));
  const auto reset = active(act_of(rule.gate), at.sum(r.gates, p.wide + rule.units, 1));
  at.put(update, r.gates, p.wide);
  at.put(reset, r.gates, p.wide + rule.units);
  at.put(r.before ? reset * at.of(r.before, p.own) : at.number(0), r.left, p.own);
}

template <class A, class T>
AB_CELL_FN void compute(GruState, const A& at, const device::GruRule& rule, const GruState::Row<T>& r,
                        const UnitPlace& p) {
  const int64_t place = p.wide + 2 * rule.units;
  const auto candidate = active(act_of(rule.candidate), at.sum(r.gates, place, 0));
  const auto old = at.of(r.before, p.own), update = at.of(r.gates, p.wide);
  const auto share = rule.origin ? at.number(1) - update : update;
  at.put(candidate, r.gates, place);
  at.put((old - share * old) + share * candidate, r.state, p.own);
}

template <class A, class T>
AB_CELL_FN void compute(GruStateGrad, const A& at, const device::GruRule& rule, const GruStateGrad::Row<T>& r,
                        const UnitPlace& p) {
  const auto up = at.sum(r.dstate, p.own, 0), update = at.of(r.gates, p.wide);
  const auto candidate = at.of(r.gates, p.wide + 2 * rule.units), old = at.of(r.before, p.own);
  const auto share = rule.origin ? at.number(1) - update : update;
  const auto dshare = up * (candidate - old), taken = up * share;
  at.put(slope(act_of(rule.gate), update, rule.origin ? -dshare : dshare), r.dgates, p.wide);
  at.put(slope(act_of(rule.candidate), candidate, taken), r.dgates, p.wide + 2 * rule.units);
  if (!r.before) at.put(at.number(0), r.dgates, p.wide + rule.units);
  if (r.dbefore) at.put(at.of(r.dbefore, p.own) + (up - taken), r.dbefore, p.own);
}

template <class A, class T>
AB_CELL_FN void compute(GruResetGrad, const A& at, const device::GruRule& rule, const GruResetGrad::Row<T>& r,
                        const UnitPlace& p) {
  const int64_t place = p.wide + rule.units;
  const auto reset = at.of(r.gates, place), dleft = at.sum(r.dleft, p.own, 0);
  at.put(slope(act_of(rule.gate), reset, dleft * at.of(r.before, p.own)), r.dgates, place);
  at.put(at.of(r.dbefore, p.own) + dleft * reset, r.dbefore, p.own);
}

template <class A, class T>
AB_CELL_FN void compute(ClippedAct, const A& at, const device::ClippedActRule& rule, const ClippedAct::Row<T>& r,
                        const UnitPlace& p) {
  at.put(clipped(static_cast<T>(rule.clip), active(act_of(rule.act), at.sum(r.x, p.own, 0))), r.x, p.own);
}

template <class A, class T>
AB_CELL_FN void compute(ClippedActGrad, const A& at, const device::ClippedActRule& rule,
                        const ClippedActGrad::Row<T>& r, const UnitPlace& p) {
  const auto y = at.of(r.y, p.own), up = clipped_slope(static_cast<T>(rule.clip), y, at.sum(r.x, p.own, 0));
  at.put(slope(act_of(rule.act), y, up), r.x, p.own);
}

template <class A, class T>
AB_CELL_FN void compute(KeepRows, const A& at, const device::UnitRule&, const KeepRows::Row<T>& r, const UnitPlace& p) {
  const T share = r.shares[p.row];
  at.put(at.number(share) * at.of(r.x, p.own) + at.number(1 - share) * at.of(r.before, p.own), r.y, p.own);
}

template <class A, class T>
AB_CELL_FN void compute(KeepRowsGrad, const A& at, const device::UnitRule&, const KeepRowsGrad::Row<T>& r,
                        const UnitPlace& p) {
  const T share = r.shares[p.row];
  const auto up = at.sum(r.x, p.own, 0);
  at.put(at.of(r.direct, p.own) + at.number(share) * up, r.y, p.own);
  at.put(at.of(r.dbefore, p.own) + at.number(1 - share) * up, r.dbefore, p.own);
}
