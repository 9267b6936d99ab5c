// Unary functions and their gradients that clip, bend or gate, for one number: like activation_functions.h.
#pragma once
#include "ops/math/activation_functions.h"

namespace anabranch::math {

// The number of sides on which x exceeds the threshold: both if that is negative and x near 0.
template <class T> AB_HD int beyond(T x, T threshold) { return (x > threshold) + (x < -threshold); }

// dy where low < v < high, else 0, without a branch: signs of activations cannot be predicted.
template <class T> AB_HD T within(T v, T low, T high, T dy) {
  return dy * (static_cast<T>(v > low) * static_cast<T>(v < high));
}

struct Relu {  // a NaN is not below 0 and is kept
  template <class T> AB_HD static T forward(T x, const T*) { return x < 0 ? T(0) : x; }
  template <class T> AB_HD static T backward(T y, T dy, const T*) { return where(y > 0, dy); }
};
struct Relu6 {
  template <class T> AB_HD static T forward(T x, const T* p) { return std::min(std::max(x, T(0)), p[0]); }
  template <class T> AB_HD static T backward(T y, T dy, const T* p) { return within(y, T(0), p[0], dy); }
};
struct Brelu {
  template <class T> AB_HD static T forward(T x, const T* p) { return std::min(std::max(x, p[0]), p[1]); }
  template <class T> AB_HD static T backward(T x, T dy, const T* p) { return within(x, p[0], p[1], dy); }
};
struct LeakyRelu {  // max(x, p[0] x): with p[0] above 1 the branches are swapped
  template <class T> AB_HD static T forward(T x, const T* p) { return (x > 0) != (p[0] > 1) ? x : p[0] * x; }
  template <class T> AB_HD static T backward(T y, T dy, const T* p) {
    return dy * ((y > 0) != (p[0] > 1) ? T(1) : p[0]);
  }
};
struct Elu {
  template <class T> AB_HD static T forward(T x, const T* p) {
    if (p[0] < 0) return x > 0 ? x + p[0] * std::expm1(x) : nothing_of(x);
    return x > 0 ? x : p[0] * std::expm1(x);
  }
  template <class T> AB_HD static T backward(T x, T dy, const T* p) { return x > 0 ? dy : dy * p[0] * std::exp(x); }
};
struct Selu {
  template <class T> AB_HD static T forward(T x, const T* p) { return p[0] * (x > 0 ? x : p[1] * std::expm1(x)); }
  template <class T> AB_HD static T backward(T y, T dy, const T* p) {
    return y > 0 ? dy * p[0] : dy * (y + p[0] * p[1]);
  }
};
struct ThresholdedRelu {
  template <class T> AB_HD static T forward(T x, const T* p) { return x > p[0] ? x : nothing_of(x); }
  template <class T> AB_HD static T backward(T x, T dy, const T* p) { return where(x > p[0], dy); }
};
struct Shrink {  // Shared by the gradients of hard and soft shrink.
  template <class T> AB_HD static T backward(T x, T dy, const T* p) {
    return where(beyond(x, p[0]) > 0, dy * beyond(x, p[0]));
  }
};
struct HardShrink : Shrink {
  template <class T> AB_HD static T forward(T x, const T* p) {
    return beyond(x, p[0]) ? x * beyond(x, p[0]) : nothing_of(x);
  }
};
struct SoftShrink : Shrink {
  template <class T> AB_HD static T forward(T x, const T* p) {
    if (x > p[0]) return x < -p[0] ? 2 * x : x - p[0];
    return x < -p[0] ? x + p[0] : nothing_of(x);
  }
};

// ---- gates

struct Softsign {
  template <class T> AB_HD static T forward(T x, const T*) { return x / (1 + std::abs(x)); }
  template <class T> AB_HD static T backward(T x, T dy, const T*) {
    return dy / ((1 + std::abs(x)) * (1 + std::abs(x)));
  }
};
struct Swish {
  template <class T> AB_HD static T forward(T x, const T* p) { return x * sigmoid(p[0] * x); }
  template <class T> AB_HD static T backward(T x, T dy, const T* p) {
    const T s = sigmoid(p[0] * x);
    return dy * (s + p[0] * x * s * (1 - s));
  }
};
struct HardSigmoid {
  template <class T> AB_HD static T forward(T x, const T* p) { return std::min(std::max(p[0] * x + p[1], T(0)), T(1)); }
  template <class T> AB_HD static T backward(T y, T dy, const T* p) { return within(y, T(0), T(1), dy * p[0]); }
};
struct HardSwish {
  template <class T> AB_HD static T forward(T x, const T* p) {
    return x * std::min(std::max(x + p[2], T(0)), p[0]) / p[1];
  }
  // as_fluid(): omits the slope of the linear part, like Fluid 1.8.5. A scale of 0 gives NaN there, as it does.
  template <class T, class AsFluid> AB_HD static T slope(T x, T dy, const T* p, AsFluid as_fluid) {
    if (x + p[2] < p[0] && x + p[2] > 0) return dy * (2 * x + p[2]) / p[1];
    const T none = T(0) / p[1];
    if (x + p[2] < p[0]) return where(false, dy) + none;
    return (as_fluid() ? dy : dy * p[0] / p[1]) + none;
  }
  template <class T> AB_HD static T backward(T x, T dy, const T* p) {
    return slope(x, dy, p, [] { return false; });
  }
};
struct HardSwishAsFluid {
  template <class T> AB_HD static T backward(T x, T dy, const T* p) {
    return HardSwish::slope(x, dy, p, [] { return true; });
  }
};
struct SoftRelu {
  template <class T> AB_HD static T forward(T x, const T* p) { return softplus(std::min(std::max(x, -p[0]), p[0])); }
  template <class T> AB_HD static T backward(T y, T dy, const T* p) {
    return where(y > -p[0] && y < p[0], -dy * std::expm1(-y));
  }
};

}  // namespace anabranch::math
