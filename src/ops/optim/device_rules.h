// The rules of element_rules.h for device kernels: made from UpdateArgs, called with an element's index and gradient.
// Each rule documents its state, numbers and flags; `rate` is LearningRate unless stated otherwise. kStates, for rules
// over many parameters: the number of its states.
#pragma once
#include <utility>

#include "ops/device/args_update.h"
#include "ops/device/kernels.h"
#include "ops/optim/element_rules.h"

namespace anabranch::device {

// A scalar in device memory, of either float type.
template <class T> struct DeviceNumber {
  const float* narrow;
  const double* wide;
  AB_HD DeviceNumber(const DeviceIn& in, bool other_float) {
    const bool is_float = std::is_same_v<T, float> != other_float;
    narrow = is_float ? in.get<float>() : nullptr;
    wide = is_float ? nullptr : in.get<double>();
  }
  AB_HD bool there() const { return narrow || wide; }
  AB_HD T get() const { return narrow ? static_cast<T>(*narrow) : static_cast<T>(*wide); }
  AB_HD T get_or(T other) const { return there() ? get() : other; }
};

template <class T> AB_HD DeviceNumber<T> number_read(const UpdateArgs& a, int k) {
  return {a.reads[k], (a.flags & other_float_read(k)) != 0};
}

template <class T> struct RuleBase {
  T *p, *state[3];
  DeviceNumber<T> rate;
  AB_HD explicit RuleBase(const UpdateArgs& a) : p(a.param.get<T>()), rate(a.rate, (a.flags & kOtherFloat) != 0) {
    for (int k = 0; k < 3; ++k) state[k] = a.state[k].get<T>();
  }
};

// reads[k] beta_k, with the betas like those of adam, for k = 0 and 1; the result has the type of reads[k].
template <class T> struct NextPower {
  DeviceNumber<T> power, tensor;
  T beta;
  float* narrow;
  double* wide;
  AB_HD NextPower(const UpdateArgs& a, int k, const DeviceOut& out)
      : power(number_read<T>(a, k)),
        tensor(number_read<T>(a, 2 + k)),
        beta(static_cast<T>(a.p[k])),
        narrow(power.narrow ? out.get<float>() : nullptr),
        wide(power.wide ? out.get<double>() : nullptr) {}
  AB_HD void move() const {
    const T next = power.get() * tensor.get_or(beta);
    if (narrow)
      *narrow = static_cast<float>(next);
    else
      *wide = static_cast<double>(next);
  }
};

// A rule whose numbers are p, in order, and the rate.
template <template <class T> class R, class T> struct NumbersRule : RuleBase<T> {
  static constexpr int kStates = R<T>::kStates;
  static constexpr bool kRated = requires(R<T> r) { r.rate; };
  R<T> rule;
  AB_HD explicit NumbersRule(const UpdateArgs& a)
      : NumbersRule(a, std::make_index_sequence<sizeof(R<T>) / sizeof(T) - kRated>()) {}
  AB_HD void operator()(int64_t i, const T& g) const {
    R<T> now = rule;
    if constexpr (kRated) now.rate = this->rate.get();
    rules::step_at(now, i, g, this->p, this->state);
  }

 private:
  template <size_t... K>
  AB_HD NumbersRule(const UpdateArgs& a, std::index_sequence<K...>) : RuleBase<T>(a), rule{static_cast<T>(a.p[K])...} {}
};
template <class T> using SgdRule = NumbersRule<rules::Sgd, T>;
template <class T> using MomentumRule = NumbersRule<rules::Momentum, T>;  // state: Velocity; p: mu
template <class T> using NesterovRule = NumbersRule<rules::Nesterov, T>;
// state: Moment; p: weights of the old moment and of the square (1 and 1 for adagrad), epsilon.
template <class T> using AdagradRule = NumbersRule<rules::DecayedAdagrad, T>;
// state: AvgSquaredGrad, AvgSquaredUpdate; p: rho, epsilon
template <class T> using AdadeltaRule = NumbersRule<rules::Adadelta, T>;
// state: squared and linear accumulator; p: l1, l2, lr_power
template <class T> using FtrlRule = NumbersRule<rules::Ftrl, T>;

// state: Moment1, Moment2; reads: Beta1Pow, Beta2Pow and, instead of p, beta1 and beta2; p: beta1, beta2, epsilon.
template <class T> struct AdamRule : RuleBase<T> {
  static constexpr int kStates = 2;
  T beta1, beta2, epsilon;
  DeviceNumber<T> power1, power2, tensor1, tensor2;
  bool next_powers;
  AB_HD explicit AdamRule(const UpdateArgs& a)
      : RuleBase<T>(a),
        beta1(static_cast<T>(a.p[0])),
        beta2(static_cast<T>(a.p[1])),
        epsilon(static_cast<T>(a.p[2])),
        power1(number_read<T>(a, 0)),
        power2(number_read<T>(a, 1)),
        tensor1(number_read<T>(a, 2)),
        tensor2(number_read<T>(a, 3)),
        next_powers((a.flags & kNextPowers) != 0) {}
  // The values shared by all elements of a step: a thread that updates many elements computes them once.
  AB_HD rules::Adam<T> step() const {
    const T keep1 = tensor1.get_or(beta1), keep2 = tensor2.get_or(beta2);
    const T p1 = next_powers ? power1.get() * keep1 : power1.get(),
            p2 = next_powers ? power2.get() * keep2 : power2.get();
    return {keep1, keep2, epsilon, rules::corrected_rate(this->rate.get(), p1, p2)};
  }
  AB_HD void operator()(int64_t i, const T& g, const rules::Adam<T>& s) const {
    rules::step_at(s, i, g, this->p, this->state);
  }
  AB_HD void operator()(int64_t i, const T& g) const { (*this)(i, g, step()); }
};

template <class T> struct AdamaxRule : RuleBase<T> {  // state: Moment, InfNorm; reads: Beta1Pow; p: like adam
  T beta1, beta2, epsilon;
  DeviceNumber<T> power;
  AB_HD explicit AdamaxRule(const UpdateArgs& a)
      : RuleBase<T>(a),
        beta1(static_cast<T>(a.p[0])),
        beta2(static_cast<T>(a.p[1])),
        epsilon(static_cast<T>(a.p[2])),
        power(number_read<T>(a, 0)) {}
  AB_HD void operator()(int64_t i, const T& g) const {
    const T rate = this->rate.get() / (1 - power.get());
    rules::step_at(rules::Adamax<T>{beta1, beta2, epsilon, rate}, i, g, this->p, this->state);
  }
};

// state: MeanSquare, Moment and, if given, MeanGrad; p: decay, momentum, epsilon.
template <class T> struct RmsPropRule : RuleBase<T> {
  T decay, mu, epsilon;
  AB_HD explicit RmsPropRule(const UpdateArgs& a)
      : RuleBase<T>(a), decay(static_cast<T>(a.p[0])), mu(static_cast<T>(a.p[1])), epsilon(static_cast<T>(a.p[2])) {}
  AB_HD void operator()(int64_t i, const T& g) const {
    const T rate = this->rate.get();
    if (this->state[2])
      rules::step_at(rules::CenteredRmsProp<T>{decay, mu, epsilon, rate}, i, g, this->p, this->state);
    else
      rules::step_at(rules::RmsProp<T>{decay, mu, epsilon, rate}, i, g, this->p, this->state);
  }
};

}  // namespace anabranch::device
