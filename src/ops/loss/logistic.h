// The logistic function, its integral and logarithms, used by losses.
#pragma once
#include <algorithm>
#include <cmath>

#include "ops/device/element.h"

namespace anabranch::loss {

// max(x, 0) + log(1 + e^-|x|) = log(1 + e^x) without overflow.
template <class T> AB_HD T softplus(T x) { return std::max(x, T{0}) + std::log1p(std::exp(-std::abs(x))); }

template <class T> AB_HD T logistic(T x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

// -log(p) bounded by +-1e20: p = 0 gives a large loss instead of an infinite one. Keeps NaN.
template <class T> AB_HD T neg_log(T p) {
  return std::max(std::min(-std::log(p), static_cast<T>(1e20)), static_cast<T>(-1e20));
}

// For a probability p and a label y; epsilon keeps the logarithms finite.
template <class T> AB_HD T log_loss(T p, T y, T epsilon) {
  return -(y * std::log(p + epsilon)) - (1 - y) * std::log(1 - p + epsilon);
}
template <class T> AB_HD T log_loss_slope(T p, T y, T epsilon) {
  return -(y / (p + epsilon)) + (1 - y) / (1 - p + epsilon);
}

// A label counts unless its integer part is the ignored label: soft labels are compared as integers, too.
template <class T> AB_HD bool is_ignored(T label, T ignored) { return std::trunc(label) == ignored; }

}  // namespace anabranch::loss
