// Gaussian error linear unit for one number: f(x) = x P(Z <= x), Z standard normal, and its approximation.
#pragma once
#include <cmath>
#include <numbers>

#include "ops/device/element.h"

namespace anabranch::math {

template <class T> AB_HD T cdf(T x) { return T(0.5) * std::erfc(-x * T(std::numbers::sqrt2 / 2)); }
template <class T> AB_HD T density(T x) {
  return std::exp(T(-0.5) * x * x) * T(std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2);
}

struct Gelu {
  template <class T> AB_HD static T forward(T x, const T* = nullptr) { return x * cdf(x); }
  template <class T> AB_HD static T backward(T x, T dy, const T* = nullptr) { return dy * (cdf(x) + x * density(x)); }
};

// The approximation of the paper: x (1 + t) / 2, t = tanh(sqrt(2 / pi) (x + 0.044715 x^3)).
struct GeluTanh {
  template <class T> static constexpr T kCubic = T(0.044715);
  template <class T> static constexpr T kScale = T(std::numbers::sqrt2* std::numbers::inv_sqrtpi);
  template <class T> AB_HD static T forward(T x, const T* = nullptr) { return x * T(0.5) * (1 + tanh_term(x)); }
  template <class T> AB_HD static T backward(T x, T dy, const T* = nullptr) {
    const T t = tanh_term(x), slope = T(kScale<T>) * (1 + 3 * T(kCubic<T>) * x * x);
    return dy * T(0.5) * (1 + t + x * (1 - t * t) * slope);
  }
  template <class T> AB_HD static T tanh_term(T x) { return std::tanh(T(kScale<T>) * (x + T(kCubic<T>) * x * x * x)); }
};

}  // namespace anabranch::math
