#include "ops/sequence/gru_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sequence/gru_loops.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"
#include "ops/sequence/gate_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::sequence::loops {
namespace HWY_NAMESPACE {

template <class Fn> HWY_INLINE void each_part(int64_t n, Fn&& fn) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) fn(d, Part{d, i, n - i});
}

HWY_INLINE V share_of(const GruRule& rule, V update) {
  return rule.origin ? hn::Sub(hn::Set(D(), 1.0f), update) : update;
}

void Gates(const GruRule& rule, int64_t n, const GruGates& row) {
  each_part(n, [&](D d, const Part& at) HWY_ATTR {
    V update = at.of(row.update), reset = at.of(row.reset);
    if (row.update_tile) {
      update = hn::Add(update, at.of(row.update_tile));
      reset = hn::Add(reset, at.of(row.reset_tile));
    }
    update = active(rule.gate, update);
    reset = active(rule.gate, reset);
    at.put(update, row.update);
    at.put(reset, row.reset);
    at.put(row.before ? times(reset, at.of(row.before)) : hn::Zero(d), row.left);
  });
}

void State(const GruRule& rule, int64_t n, const GruState& row) {
  each_part(n, [&](D, const Part& at) HWY_ATTR {
    V candidate = at.of(row.candidate);
    if (row.tile) candidate = hn::Add(candidate, at.of(row.tile));
    candidate = active(rule.candidate, candidate);
    const V old = at.of(row.before), share = share_of(rule, at.of(row.update));
    at.put(candidate, row.candidate);
    at.put(hn::Add(hn::Sub(old, times(share, old)), times(share, candidate)), row.state);
  });
}

void StateBack(const GruRule& rule, int64_t n, const GruStateBack& row) {
  each_part(n, [&](D, const Part& at) HWY_ATTR {
    V up = at.of(row.dstate);
    if (row.tile) up = hn::Add(up, at.of(row.tile));
    const V update = at.of(row.update), candidate = at.of(row.candidate), old = at.of(row.before);
    const V share = share_of(rule, update), dshare = times(up, hn::Sub(candidate, old));
    const V dupdate = rule.origin ? hn::Neg(dshare) : dshare, taken = times(up, share);
    at.put(slope(rule.gate, update, dupdate), row.dupdate);
    at.put(slope(rule.candidate, candidate, taken), row.dcandidate);
    at.put(hn::Add(at.of(row.dbefore), hn::Sub(up, taken)), row.dbefore);
  });
}

void ResetBack(const GruRule& rule, int64_t n, const GruResetBack& row) {
  each_part(n, [&](D, const Part& at) HWY_ATTR {
    const V reset = at.of(row.reset), dleft = at.of(row.tile);
    at.put(slope(rule.gate, reset, times(dleft, at.of(row.before))), row.dreset);
    at.put(hn::Add(at.of(row.dbefore), times(dleft, reset)), row.dbefore);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::sequence::loops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::sequence::loops {

HWY_EXPORT(Gates);
HWY_EXPORT(State);
HWY_EXPORT(StateBack);
HWY_EXPORT(ResetBack);

void gru_gates(const GruRule& rule, int64_t n, const GruGates& row) { HWY_DYNAMIC_DISPATCH(Gates)(rule, n, row); }
void gru_state(const GruRule& rule, int64_t n, const GruState& row) { HWY_DYNAMIC_DISPATCH(State)(rule, n, row); }
void gru_state_back(const GruRule& rule, int64_t n, const GruStateBack& row) {
  HWY_DYNAMIC_DISPATCH(StateBack)(rule, n, row);
}
void gru_reset_back(const GruRule& rule, int64_t n, const GruResetBack& row) {
  HWY_DYNAMIC_DISPATCH(ResetBack)(rule, n, row);
}

}  // namespace anabranch::sequence::loops
#endif  // HWY_ONCE
