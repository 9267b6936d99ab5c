// The activations of recurrent layers for one number, for device kernels.
#pragma once
#include "ops/math/rectifier_functions.h"
#include "ops/sequence/acts.h"

namespace anabranch::sequence {

template <class T> AB_HD T active(Act act, T x) {
  switch (act) {
    case Act::kSigmoid: return math::Sigmoid::forward<T>(x, nullptr);
    case Act::kTanh: return math::Tanh::forward<T>(x, nullptr);
    case Act::kRelu: return math::Relu::forward<T>(x, nullptr);
    case Act::kIdentity: return x;
  }
  return x;
}

// g f'(x), where y = f(x).
template <class T> AB_HD T slope(Act act, T y, T g) {
  switch (act) {
    case Act::kSigmoid: return math::Sigmoid::backward<T>(y, g, nullptr);
    case Act::kTanh: return math::Tanh::backward<T>(y, g, nullptr);
    case Act::kRelu: return math::Relu::backward<T>(y, g, nullptr);
    case Act::kIdentity: return g;
  }
  return g;
}

// Keeps NaN; limit 0: no clipping.
template <class T> AB_HD T clipped(T limit, T x) {
  if (limit <= 0) return x;
  return x < -limit ? -limit : limit < x ? limit : x;
}

// No gradient where a value was clipped.
template <class T> AB_HD T clipped_slope(T limit, T y, T g) {
  return limit > 0 && (y >= limit || y <= -limit) ? T(0) : g;
}

}  // namespace anabranch::sequence
