// Update rules: for each the numbers of a step. Its formula, step(rule, g, p, state...), updates an element p of a
// parameter and its state by the gradient g. The formulas are in update_formulas-inl.h, once for numbers on the CPU and
// on devices (ops/optim/element_rules.h) and for vectors (rule_vectors-inl.h): dense gradients, rows of sparse ones,
// the records of growable tables and the updates of servers all use them. kStates: arrays of state.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace anabranch::rules {

template <class T> struct Sgd {
  static constexpr int kStates = 0;
  T rate = 0;
};

template <class T> struct Momentum {
  static constexpr int kStates = 1;
  T mu, rate = 0;
};
template <class T> struct Nesterov {
  static constexpr int kStates = 1;
  T mu, rate = 0;
};

template <class T> struct Adagrad {  // moment = moment + g^2
  static constexpr int kStates = 1;
  T epsilon, rate = 0;
};
template <class T> struct DecayedAdagrad {  // moment = keep moment + add g^2
  static constexpr int kStates = 1;
  T keep, add, epsilon, rate = 0;
};

template <class T> struct Adadelta {
  static constexpr int kStates = 2;
  T rho, epsilon;
};

template <class T> struct Adam {
  static constexpr int kStates = 2;
  T beta1, beta2, epsilon, rate = 0;  // rate: corrected_rate
};
template <class T> struct Adamax {
  static constexpr int kStates = 2;
  T beta1, beta2, epsilon, rate = 0;
};

template <class T> struct RmsProp {
  static constexpr int kStates = 2;
  T decay, mu, epsilon, rate = 0;
};
template <class T> struct CenteredRmsProp {  // and the mean of gradients
  static constexpr int kStates = 3;
  T decay, mu, epsilon, rate = 0;
};

template <class T> struct Ftrl {
  static constexpr int kStates = 2;
  T l1, l2, power, rate = 0;  // power: lr_power
};

// The rules that update single rows of a table, each by its own gradients and moments. Files hold these numbers.
enum class RowRule : int32_t { kSgd = 0, kAdagrad = 1, kAdam = 2, kMomentum = 3, kFtrl = 4, kRowAdagrad = 5 };

struct RowRuleInfo {
  const char* name;
  int32_t moments;  // arrays of state, as wide as the row
  bool single;      // or one number for the whole row
};
inline constexpr std::array<RowRuleInfo, 6> kRowRules = {{{"sgd", 0, false},
                                                          {"adagrad", 1, false},
                                                          {"adam", 2, false},
                                                          {"momentum", 1, false},
                                                          {"ftrl", 2, false},
                                                          {"row_adagrad", 0, true}}};
constexpr const RowRuleInfo& info_of(RowRule rule) { return kRowRules[static_cast<size_t>(rule)]; }

// The numbers of the first three, which fixed tables take without other ops.
template <class T> struct RowStep {
  RowRule rule = RowRule::kSgd;
  T rate = 0, beta1 = 0, beta2 = 0, epsilon = 0;

  // fn(rule)
  template <class Fn> void with_rule(const Fn& fn) const {
    if (rule == RowRule::kSgd) return fn(Sgd<T>{rate});
    if (rule == RowRule::kAdagrad) return fn(Adagrad<T>{epsilon, rate});
    fn(Adam<T>{beta1, beta2, epsilon, rate});
  }
};

}  // namespace anabranch::rules
