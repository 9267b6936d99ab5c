// Distributions of random numbers, from numbers u uniform in [0, 1).
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

#include "ops/device/element.h"

namespace anabranch::tensor {

// Uniform in [lo, hi): rounding must not reach the open bound.
template <class T> AB_HD T uniform_in(double u, T lo, T hi) {
  const T v = lo + static_cast<T>(u) * (hi - lo);
  return v < hi ? v : lo;
}

// One of `count` integers from 0 on.
AB_HD inline int64_t below(double u, int64_t count) {
  const auto at = static_cast<int64_t>(u * static_cast<double>(count));
  return at < count - 1 ? at : count - 1;
}

#define AB_NORMAL_FN AB_HD inline
#include "base/normal-inl.h"
#undef AB_NORMAL_FN

}  // namespace anabranch::tensor
