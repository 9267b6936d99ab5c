// One step of an LSTM without weights, on devices: "lstm_unit", "lstm_unit_grad".
#include "ops/device/args_recurrent.h"
#include "ops/device/kernels.h"
#include "ops/math/activation_functions.h"

namespace anabranch::device {

// The gates of one unit; x points at its input gate.
template <class T> struct UnitGates {
  T in, forget, out, candidate;
  AB_HD UnitGates(const T* x, int64_t units, T forget_bias)
      : in(math::sigmoid(x[0])),
        forget(math::sigmoid(x[units] + forget_bias)),
        out(math::sigmoid(x[2 * units])),
        candidate(std::tanh(x[3 * units])) {}
};

struct LstmUnit {
  using Args = LstmUnitArgs;
  template <class T> struct Body {
    const T *x, *before;
    T *cell, *hidden;
    int64_t units;
    T forget_bias;
    AB_HD void operator()(int64_t i) const {
      const UnitGates<T> g(x + i / units * 4 * units + i % units, units, forget_bias);
      const T now = before[i] * g.forget + g.in * g.candidate;
      cell[i] = now;
      hidden[i] = std::tanh(now) * g.out;
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.rows * a.units,
                Body<T>{a.x.get<T>(), a.before.get<T>(), a.cell.get<T>(), a.hidden.get<T>(), a.units,
                        static_cast<T>(a.forget_bias)});
  }
};

struct LstmUnitGrad {
  using Args = LstmUnitGradArgs;
  template <class T> struct Body {
    const T *x, *before, *cell, *dcells, *dhiddens;
    T *dx, *dbefore;
    int64_t units;
    T forget_bias;
    AB_HD void operator()(int64_t i) const {
      const int64_t at = i / units * 4 * units + i % units;
      const UnitGates<T> g(x + at, units, forget_bias);
      const T shown = std::tanh(cell[i]), up = dhiddens ? dhiddens[i] : T(0);
      const T dcell = (dcells ? dcells[i] : T(0)) + up * g.out * (1 - shown * shown);
      if (dbefore) dbefore[i] = dcell * g.forget;
      if (!dx) return;
      dx[at] = math::Sigmoid::backward<T>(g.in, dcell * g.candidate, nullptr);
      dx[at + units] = math::Sigmoid::backward<T>(g.forget, dcell * before[i], nullptr);
      dx[at + 2 * units] = math::Sigmoid::backward<T>(g.out, up * shown, nullptr);
      dx[at + 3 * units] = math::Tanh::backward<T>(g.candidate, dcell * g.in, nullptr);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.rows * a.units,
                Body<T>{a.x.get<T>(), a.before.get<T>(), a.cell.get<T>(), a.dcell.get<T>(), a.dhidden.get<T>(),
                        a.dx.get<T>(), a.dbefore.get<T>(), a.units, static_cast<T>(a.forget_bias)});
  }
};

AB_KERNEL("lstm_unit", LstmUnit, float, double);
AB_KERNEL("lstm_unit_grad", LstmUnitGrad, float, double);

}  // namespace anabranch::device
