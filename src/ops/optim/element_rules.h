// The formulas of update rules for one element, on the CPU and on devices: those of sparse/update_rules.h, and the
// parts of rules that need norms. Each operation rounds separately, in the order of the documentation of the ops.
#pragma once
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "ops/device/element.h"
#include "sparse/update_rules.h"

namespace anabranch::rules {

using std::abs;
using std::max;
using std::pow;
using std::sqrt;
template <class T> AB_HD T pick(bool test, T a, T b) { return test ? a : b; }

#define AB_RULE_FN AB_HD inline
#include "sparse/update_formulas-inl.h"
#undef AB_RULE_FN

// The step of element i.
template <class R, class T> AB_HD void step_at(const R& rule, int64_t i, const T& g, T* p, T* const* state) {
  if constexpr (R::kStates == 0) step(rule, g, p[i]);
  if constexpr (R::kStates == 1) step(rule, g, p[i], state[0][i]);
  if constexpr (R::kStates == 2) step(rule, g, p[i], state[0][i], state[1][i]);
  if constexpr (R::kStates == 3) step(rule, g, p[i], state[0][i], state[1][i], state[2][i]);
}

// The rate of adam, from the powers of both betas.
template <class T> AB_HD T corrected_rate(T rate, T power1, T power2) {
  return rate * std::sqrt(1 - power2) / (1 - power1);
}

// local: the rate of this parameter, from its norm and that of its gradient.
template <class T> AB_HD void lars(T& p, T& velocity, const T& g, T mu, T local, T decay) {
  const T step = velocity * mu + local * (g + decay * p);
  velocity = step;
  p -= step;
}
template <class T> AB_HD T lars_rate(T rate, T p_norm, T g_norm, T coeff, T decay) {
  return p_norm > 0 && g_norm > 0 ? rate * coeff * p_norm / (g_norm + decay * p_norm) : rate;
}

// The moments, and the step before it is scaled by norms.
template <class T>
AB_HD T lamb_step(const T& p, T& first, T& second, const T& g, T beta1, T beta2, T epsilon, T decay) {
  first = beta1 * first + (1 - beta1) * g;
  second = beta2 * second + (1 - beta2) * g * g;
  return first / (std::sqrt(second) + epsilon) + decay * p;
}
template <class T> AB_HD T lamb_rate(T rate, T p_norm, T step_norm) {
  return rate * (p_norm > 0 && step_norm > 0 ? p_norm / step_norm : T{1});
}

}  // namespace anabranch::rules
