// Unary functions and their gradients for one number: exponentials, powers, trigonometric and step functions. forward
// returns f(x); backward returns dy f', as a function of x or of y = f(x), as the row of activations.cc states. p: the
// op's attributes. x, y and dy are float or double.
#pragma once
#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/device/element.h"
#include "ops/kernels/round_half.h"

namespace anabranch::math {

// ---- shared expressions

template <class T> AB_HD T sigmoid(T x) { return T(1) / (T(1) + std::exp(-x)); }
template <class T> AB_HD T softplus(T x) {  // log(1 + e^x) without overflow
  return std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x)));
}
// ln(1 + e^x), and its asymptotes beyond the threshold, if that is positive.
template <class T> AB_HD T cut_softplus(T x, T threshold) {
  if (!(threshold > 0) || std::abs(x) <= threshold) return softplus(x);
  return x > threshold ? x : std::exp(x);
}
// dy where the function is not constant, else 0; a product, so that a NaN in dy propagates.
template <class T> AB_HD T where(bool moves, T dy) { return dy * static_cast<T>(moves); }
// 0, or NaN if x is NaN. For use after a failed ordered comparison of x with a number.
template <class T> AB_HD T nothing_of(T x) { return x == x ? T(0) : x; }

// ---- exponentials

struct Sigmoid {
  template <class T> AB_HD static T forward(T x, const T*) { return sigmoid(x); }
  template <class T> AB_HD static T backward(T y, T dy, const T*) { return dy * y * (1 - y); }
};
struct Tanh {
  template <class T> AB_HD static T forward(T x, const T*) { return std::tanh(x); }
  template <class T> AB_HD static T backward(T y, T dy, const T*) { return dy * (1 - y * y); }
};
struct Exp {
  template <class T> AB_HD static T forward(T x, const T*) { return std::exp(x); }
  template <class T> AB_HD static T backward(T y, T dy, const T*) { return dy * y; }
};
struct Log {
  template <class T> AB_HD static T forward(T x, const T*) { return std::log(x); }
  template <class T> AB_HD static T backward(T x, T dy, const T*) { return dy / x; }
};
struct Log1p {
  template <class T> AB_HD static T forward(T x, const T*) { return std::log1p(x); }
  template <class T> AB_HD static T backward(T x, T dy, const T*) { return dy / (1 + x); }
};
struct Mish {
  template <class T> AB_HD static T forward(T x, const T* p) { return x * std::tanh(cut_softplus(x, p[0])); }
  template <class T> AB_HD static T backward(T x, T dy, const T* p) {
    const T s = cut_softplus(x, p[0]), t = std::tanh(s);
    return dy * (t - x * (1 - t * t) * std::expm1(-s));
  }
};
struct Softplus {
  template <class T> AB_HD static T forward(T x, const T*) { return softplus(x); }
  template <class T> AB_HD static T backward(T x, T dy, const T*) { return dy * sigmoid(x); }
};
struct LogSigmoid {
  template <class T> AB_HD static T forward(T x, const T*) { return -softplus(-x); }
  template <class T> AB_HD static T backward(T x, T dy, const T*) { return dy * sigmoid(-x); }
};
struct TanhShrink {
  template <class T> AB_HD static T forward(T x, const T*) { return x - std::tanh(x); }
  template <class T> AB_HD static T backward(T x, T dy, const T*) {
    const T t = std::tanh(x);
    return dy * t * t;
  }
};
struct Stanh {
  template <class T> AB_HD static T forward(T x, const T* p) { return p[1] * std::tanh(p[0] * x); }
  template <class T> AB_HD static T backward(T x, T dy, const T* p) {
    const T t = std::tanh(p[0] * x);
    return dy * p[0] * p[1] * (1 - t * t);
  }
};

// ---- powers and trigonometric functions

struct Sqrt {
  template <class T> AB_HD static T forward(T x, const T*) { return std::sqrt(x); }
  template <class T> AB_HD static T backward(T y, T dy, const T*) { return dy / (2 * y); }
};
struct Rsqrt {
  template <class T> AB_HD static T forward(T x, const T*) { return 1 / std::sqrt(x); }
  template <class T> AB_HD static T backward(T y, T dy, const T*) { return dy * y * y * y / -2; }
};
struct Square {
  template <class T> AB_HD static T forward(T x, const T*) { return x * x; }
  template <class T> AB_HD static T backward(T x, T dy, const T*) { return dy * 2 * x; }
};
struct Reciprocal {
  template <class T> AB_HD static T forward(T x, const T*) { return 1 / x; }
  template <class T> AB_HD static T backward(T y, T dy, const T*) { return -dy * y * y; }
};
struct Abs {
  template <class T> AB_HD static T forward(T x, const T*) { return std::abs(x); }
  template <class T> AB_HD static T backward(T x, T dy, const T*) {
    return dy * (static_cast<T>(x > 0) - static_cast<T>(x < 0));
  }
};
struct Sin {
  template <class T> AB_HD static T forward(T x, const T*) { return std::sin(x); }
  template <class T> AB_HD static T backward(T x, T dy, const T*) { return dy * std::cos(x); }
};
struct Cos {
  template <class T> AB_HD static T forward(T x, const T*) { return std::cos(x); }
  template <class T> AB_HD static T backward(T x, T dy, const T*) { return -dy * std::sin(x); }
};
struct Acos {
  template <class T> AB_HD static T forward(T x, const T*) { return std::acos(x); }
  template <class T> AB_HD static T backward(T x, T dy, const T*) { return -dy / std::sqrt(1 - x * x); }
};
struct Asin {
  template <class T> AB_HD static T forward(T x, const T*) { return std::asin(x); }
  template <class T> AB_HD static T backward(T x, T dy, const T*) { return dy / std::sqrt(1 - x * x); }
};
struct Atan {
  template <class T> AB_HD static T forward(T x, const T*) { return std::atan(x); }
  template <class T> AB_HD static T backward(T x, T dy, const T*) { return dy / (1 + x * x); }
};
struct Erf {
  template <class T> AB_HD static T forward(T x, const T*) { return std::erf(x); }
  template <class T> AB_HD static T backward(T x, T dy, const T*) {
    return dy * 2 * T(std::numbers::inv_sqrtpi) * std::exp(-x * x);
  }
};

// ---- steps: gradient zero where it exists

struct Step {
  template <class T> AB_HD static T backward(T, T dy, const T*) { return where(false, dy); }
};
struct Ceil : Step {
  template <class T> AB_HD static T forward(T x, const T*) { return std::ceil(x); }
};
struct Floor : Step {
  template <class T> AB_HD static T forward(T x, const T*) { return std::floor(x); }
};
struct Round : Step {
  template <class T> AB_HD static T forward(T x, const T*) { return round_half_away(x); }
};

}  // namespace anabranch::math
