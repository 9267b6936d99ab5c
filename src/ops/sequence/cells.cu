// The gate arithmetic of recurrences on devices, for all units of all rows of a step: "lstm_cell", "lstm_cell_grad",
// "gru_gates", "gru_state", "gru_state_grad", "gru_reset_grad", "clipped_act" and "clipped_act_grad".
#include "ops/device/args_recurrent.h"
#include "ops/device/kernels.h"
#include "ops/sequence/act_functions.h"

namespace anabranch::device {

using sequence::Act, sequence::active, sequence::clipped, sequence::clipped_slope, sequence::slope;

AB_HD inline Act act_of(int32_t number) { return static_cast<Act>(number); }

struct LstmCell {
  using Args = LstmCellArgs;
  template <class T> struct Body {
    LstmRule rule;
    T* gates;
    const T *before, *peepholes;
    T *cell, *hidden;
    int64_t row_hidden;
    AB_HD void operator()(int64_t i) const {
      const int64_t d = rule.units, row = i / d, unit = i % d;
      T* g = gates + row * 4 * d + unit;
      T &candidate = g[rule.places[0] * d], &in = g[rule.places[1] * d], &forget = g[rule.places[2] * d];
      T& out = g[rule.places[3] * d];
      const T old = before ? before[i] : T(0);
      const Act gate = act_of(rule.gate);
      candidate = active(act_of(rule.candidate), candidate);
      in = active(gate, peepholes ? in + peepholes[unit] * old : in);
      forget = active(gate, peepholes ? forget + peepholes[d + unit] * old : forget);
      const T kept = before ? forget * old : T(0);
      const T now = clipped(static_cast<T>(rule.clip), in * candidate + kept);
      out = active(gate, peepholes ? out + peepholes[2 * d + unit] * now : out);
      cell[i] = now;
      hidden[row * row_hidden + unit] = active(act_of(rule.cell), now) * out;
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.rows * a.rule.units,
                Body<T>{a.rule, a.gates.get<T>(), a.before.get<T>(), a.peepholes.get<T>(), a.cell.get<T>(),
                        a.hidden.get<T>(), a.row_hidden});
  }
};

struct LstmCellGrad {
  using Args = LstmCellGradArgs;
  template <class T> struct Body {
    LstmRule rule;
    const T *gates, *cell, *before, *peepholes, *dhidden, *dcells;
    T *dgates, *dbefore;
    int64_t row_dhidden;
    AB_HD void operator()(int64_t i) const {
      const int64_t d = rule.units, row = i / d, unit = i % d, at = row * 4 * d + unit;
      const auto place = [&](int which) { return at + rule.places[which] * d; };
      const T candidate = gates[place(0)], in = gates[place(1)], forget = gates[place(2)], out = gates[place(3)];
      const T now = cell[i], old = before ? before[i] : T(0), up = dhidden[row * row_dhidden + unit];
      const Act gate = act_of(rule.gate);
      const T shown = active(act_of(rule.cell), now);
      const T dout = slope(gate, out, up * shown);
      T dcell = dcells[i] + slope(act_of(rule.cell), shown, up * out);
      if (peepholes) dcell += dout * peepholes[2 * d + unit];
      dcell = clipped_slope(static_cast<T>(rule.clip), now, dcell);
      const T din = slope(gate, in, dcell * candidate);
      const T dforget = before ? slope(gate, forget, dcell * old) : T(0);
      dgates[place(0)] = slope(act_of(rule.candidate), candidate, dcell * in);
      dgates[place(1)] = din;
      dgates[place(2)] = dforget;
      dgates[place(3)] = dout;
      if (!dbefore) return;
      T back = dcell * forget;
      if (peepholes) back += din * peepholes[unit] + dforget * peepholes[d + unit];
      dbefore[i] += back;
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.rows * a.rule.units,
                Body<T>{a.rule, a.gates.get<T>(), a.cell.get<T>(), a.before.get<T>(), a.peepholes.get<T>(),
                        a.dhidden.get<T>(), a.dcell.get<T>(), a.dgates.get<T>(), a.dbefore.get<T>(), a.row_dhidden});
  }
};

struct GruGates {
  using Args = GruArgs;
  template <class T> struct Body {
    T* gates;
    const T* before;
    T* left;
    int64_t units;
    Act act;
    AB_HD void operator()(int64_t i) const {
      T* g = gates + i / units * 3 * units + i % units;
      g[0] = active(act, g[0]);
      g[units] = active(act, g[units]);
      left[i] = before ? g[units] * before[i] : T(0);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.rows * a.units,
                Body<T>{a.gates.get<T>(), a.before.get<T>(), a.left.get<T>(), a.units, act_of(a.gate)});
  }
};

struct GruState {
  using Args = GruArgs;
  template <class T> struct Body {
    T* gates;
    const T* before;
    T* state;
    int64_t units;
    Act act;
    bool origin;
    AB_HD void operator()(int64_t i) const {
      T* g = gates + i / units * 3 * units + i % units;
      const T candidate = g[2 * units] = active(act, g[2 * units]);
      const T old = before ? before[i] : T(0), share = origin ? 1 - g[0] : g[0];
      state[i] = old - share * old + share * candidate;
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(
        launch, a.rows * a.units,
        Body<T>{a.gates.get<T>(), a.before.get<T>(), a.state.get<T>(), a.units, act_of(a.candidate), a.origin != 0});
  }
};

struct GruStateGrad {
  using Args = GruGradArgs;
  template <class T> struct Body {
    const T *gates, *before, *dstate;
    T *dgates, *dbefore;
    int64_t units;
    Act gate, act;
    bool origin;
    AB_HD void operator()(int64_t i) const {
      const int64_t at = i / units * 3 * units + i % units;
      const T update = gates[at], candidate = gates[at + 2 * units], up = dstate[i];
      const T old = before ? before[i] : T(0), share = origin ? 1 - update : update;
      const T dshare = up * (candidate - old);
      dgates[at] = slope(gate, update, origin ? -dshare : dshare);
      dgates[at + 2 * units] = slope(act, candidate, up * share);
      if (!before) dgates[at + units] = T(0);
      if (dbefore) dbefore[i] += up - up * share;
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.rows * a.units,
                Body<T>{a.gates.get<T>(), a.before.get<T>(), a.dstate.get<T>(), a.dgates.get<T>(), a.dbefore.get<T>(),
                        a.units, act_of(a.gate), act_of(a.candidate), a.origin != 0});
  }
};

struct GruResetGrad {
  using Args = GruGradArgs;
  template <class T> struct Body {
    const T *gates, *before, *dleft;
    T *dgates, *dbefore;
    int64_t units;
    Act gate;
    AB_HD void operator()(int64_t i) const {
      const int64_t at = i / units * 3 * units + i % units + units;
      const T reset = gates[at];
      dgates[at] = slope(gate, reset, dleft[i] * before[i]);
      dbefore[i] += dleft[i] * reset;
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.rows * a.units,
                Body<T>{a.gates.get<T>(), a.before.get<T>(), a.dleft.get<T>(), a.dgates.get<T>(), a.dbefore.get<T>(),
                        a.units, act_of(a.gate)});
  }
};

struct ClippedAct {
  using Args = ClippedActArgs;
  template <class T> struct Body {
    T* x;
    T limit;
    Act act;
    AB_HD void operator()(int64_t i) const { x[i] = clipped(limit, active(act, x[i])); }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.n, Body<T>{a.x.get<T>(), static_cast<T>(a.clip), act_of(a.act)});
  }
};

struct ClippedActGrad {
  using Args = ClippedActArgs;
  template <class T> struct Body {
    const T* y;
    T *dx, limit;
    Act act;
    AB_HD void operator()(int64_t i) const { dx[i] = slope(act, y[i], clipped_slope(limit, y[i], dx[i])); }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.n, Body<T>{a.y.get<T>(), a.x.get<T>(), static_cast<T>(a.clip), act_of(a.act)});
  }
};

AB_KERNEL("lstm_cell", LstmCell, float, double);
AB_KERNEL("lstm_cell_grad", LstmCellGrad, float, double);
AB_KERNEL("gru_gates", GruGates, float, double);
AB_KERNEL("gru_state", GruState, float, double);
AB_KERNEL("gru_state_grad", GruStateGrad, float, double);
AB_KERNEL("gru_reset_grad", GruResetGrad, float, double);
AB_KERNEL("clipped_act", ClippedAct, float, double);
AB_KERNEL("clipped_act_grad", ClippedActGrad, float, double);

}  // namespace anabranch::device
