// Kernels of elementwise update rules. A rule is a struct with
//   void step(T* param, const std::array<T*, N>& state, const T* grad, T rate, int64_t n) const
// for float and double, made from the attributes; `rate` is the result of `rate_of` for the context in each step.
#pragma once
#include <array>

#include "ops/optim/element_rules.h"
#include "ops/optim/rule_loops.h"
#include "ops/optim/update.h"

namespace anabranch::optim {

template <size_t N> using StateTable = std::array<StateSlot, N>;

template <size_t N> StateSlots as_slots(const StateTable<N>& table) { return {table.begin(), table.end()}; }

// A rule of sparse/update_rules.h as such a struct.
template <template <class T> class Rule, class T> struct ByRule {
  static constexpr size_t kStates = Rule<T>::kStates;
  Rule<T> rule;

  void step(T* param, const std::array<T*, kStates>& state, const T* grad, T rate, int64_t n) const {
    Rule<T> now = rule;
    if constexpr (requires { now.rate; }) now.rate = rate;
    if constexpr (std::is_same_v<T, float>) return loops::update(now, param, state.data(), grad, n);
    for (int64_t i = 0; i < n; ++i) rules::step_at(now, i, grad[i], param, state.data());
  }
};

template <class T, size_t N, class Rule, class RateOf>
Kernel elementwise_update(const KernelArgs& op, const StateTable<N>& table, Rows which, Rule rule, RateOf rate_of) {
  const In param = op.in("Param"), grad = op.in("Grad");
  const Out param_out = op.out("ParamOut");
  std::array<In, N> state_in;
  std::array<Out, N> state_out;
  for (size_t k = 0; k < N; ++k) {
    state_in[k] = op.in(table[k].in);
    state_out[k] = op.out(table[k].out);
  }
  Gradients<T> gradients;
  return [=](KernelContext& c) mutable {
    const T rate = rate_of(c);
    T* p = updated<T>(c, param, param_out);
    std::array<T*, N> state;
    for (size_t k = 0; k < N; ++k) state[k] = updated<T>(c, state_in[k], state_out[k]);
    gradients.read(c.value(grad), c[param]);
    gradients.update(c, which, [&](int64_t i, int64_t n, const T* g) {
      std::array<T*, N> at = state;
      for (T*& s : at) s += i;
      rule.step(p + i, at, g, rate, n);
    });
  };
}

// The rate is the input LearningRate.
template <class T, size_t N, class Rule>
Kernel elementwise_update(const KernelArgs& op, const StateTable<N>& table, Rows which, Rule rule) {
  const In rate = op.in("LearningRate");
  return elementwise_update<T>(op, table, which, rule, [rate](KernelContext& c) { return scalar<T>(c[rate]); });
}

}  // namespace anabranch::optim
