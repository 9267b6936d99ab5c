// Elementwise functions of ops other than activations: scaling, clipping, powers, conversion, signs and predicates.
#pragma once
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/device/element.h"
#include "ops/kernels/whole.h"
#include "ops/kernels/wrapping.h"

namespace anabranch::math {

// scale x + bias, or scale (x + bias).
template <class T> struct Affine {
  using Wide = Wrapping<T>;
  T scale, bias;
  bool bias_last;
  AB_HD T operator()(T x) const {
    const auto v = static_cast<Wide>(x), a = static_cast<Wide>(scale), b = static_cast<Wide>(bias);
    return static_cast<T>(bias_last ? v * a + b : (v + b) * a);
  }
};

// One bound after the other: each is a single instruction that propagates NaN.
template <class T> AB_HD T clipped(T x, T lo, T hi) {
  const T raised = x < lo ? lo : x;
  return raised > hi ? hi : raised;
}
template <class T> AB_HD T clipped_grad(T x, T dout, T lo, T hi) { return x > lo && x < hi ? dout : T(0); }

// An integer power of an integer, modulo its range.
template <class T> AB_HD T whole_power(T base, T exponent) {
  using U = std::make_unsigned_t<T>;
  U power = 1;
  for (auto square = static_cast<U>(base); exponent > 0; exponent >>= 1, square *= square) {
    if (exponent & 1) power *= square;
  }
  return static_cast<T>(power);
}

// The gradient of x^p, for floating-point types.
template <class T> AB_HD T power_grad(T x, T dy, T p) { return dy * p * std::pow(x, p - 1); }

template <class T> AB_HD T sign_of(T x) { return static_cast<T>((x > 0) - (x < 0)); }

// Conversion to another type: truncates floating-point numbers towards zero; bool: x != 0.
template <class To, class From> AB_HD To converted_number(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    return whole<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

// ---- predicates, all false for integers

struct NotFinite {  // x - x is 0 except for infinities and NaN
  template <class T> AB_HD static bool of(T x) { return !(x - x == 0); }
};
struct Infinite {
  template <class T> AB_HD static bool of(T x) { return std::abs(x) > std::numeric_limits<T>::max(); }
};
struct NoNumber {
  template <class T> AB_HD static bool of(T x) { return x != x; }
};

}  // namespace anabranch::math
