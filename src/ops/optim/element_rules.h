// Update rules for one element: each function updates a parameter p and its state by the gradient g, with the formulas
// of the ops' documentation. Each operation rounds separately, in the order written here.
#pragma once
#include <algorithm>
#include <cmath>

#include "ops/device/element.h"

namespace anabranch::optim::rules {

template <class T> AB_HD void sgd(T& p, const T& g, T rate) { p -= rate * g; }

template <class T> AB_HD void momentum(T& p, T& velocity, const T& g, T mu, T rate) {
  velocity = velocity * mu + g;
  p -= rate * velocity;
}
template <class T> AB_HD void nesterov(T& p, T& velocity, const T& g, T mu, T rate) {
  velocity = velocity * mu + g;
  p -= (g + velocity * mu) * rate;
}

template <class T> AB_HD void adagrad(T& p, T& moment, const T& g, T keep, T add, T epsilon, T rate) {
  moment = keep * moment + add * g * g;
  p -= rate * g / (std::sqrt(moment) + epsilon);
}

template <class T> AB_HD void adadelta(T& p, T& squared_grad, T& squared_update, const T& g, T keep, T add, T epsilon) {
  squared_grad = keep * squared_grad + add * (g * g);
  const T under = squared_grad + epsilon;
  const T update = -std::sqrt((squared_update + epsilon) / under) * g;
  squared_update = keep * squared_update + add * (update * update);
  // As in Fluid 1.8.5, the step uses the average that already contains the update.
  p -= std::sqrt((squared_update + epsilon) / under) * g;
}

// rate is corrected, see corrected_rate.
template <class T>
AB_HD void adam(T& p, T& first, T& second, const T& g, T keep1, T add1, T keep2, T add2, T epsilon, T rate) {
  first = keep1 * first + add1 * g;
  second = keep2 * second + add2 * (g * g);
  p -= rate * (first / (std::sqrt(second) + epsilon));
}
template <class T> AB_HD T corrected_rate(T rate, T power1, T power2) {
  return rate * std::sqrt(1 - power2) / (1 - power1);
}

template <class T>
AB_HD void adamax(T& p, T& moment, T& norm, const T& g, T keep1, T add1, T keep2, T epsilon, T rate) {
  moment = keep1 * moment + add1 * g;
  norm = std::max(std::abs(g), keep2 * norm + epsilon);
  p -= rate * (moment / norm);
}

template <class T> AB_HD void rmsprop(T& p, T& square, T& moment, const T& g, T keep, T add, T mu, T epsilon, T rate) {
  square = keep * square + add * (g * g);
  moment = mu * moment + rate * g / std::sqrt(square + epsilon);
  p -= moment;
}
template <class T>
AB_HD void centered_rmsprop(T& p, T& square, T& moment, T& mean, const T& g, T keep, T add, T mu, T epsilon, T rate) {
  square = keep * square + add * (g * g);
  mean = keep * mean + add * g;
  moment = mu * moment + rate * g / std::sqrt(square - mean * mean + epsilon);
  p -= moment;
}

// power: lr_power, usually -1/2.
template <class T> AB_HD T ftrl_root(T x, T power) { return power == T(-0.5) ? std::sqrt(x) : std::pow(x, -power); }
template <class T> AB_HD void ftrl(T& p, T& squared, T& linear, const T& g, T l1, T l2, T power, T rate) {
  const T accum = squared + g * g;
  const T new_root = ftrl_root(accum, power);
  linear += g - (new_root - ftrl_root(squared, power)) / rate * p;
  const T pull = (linear > 0 ? l1 : linear < 0 ? -l1 : T{0}) - linear;
  p = std::abs(linear) > l1 ? pull / (new_root / rate + 2 * l2) : T{0};
  squared = accum;
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

}  // namespace anabranch::optim::rules
