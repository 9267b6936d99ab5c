// Binary arithmetic for one pair of numbers: of(x, y), and the terms dx and dy of the gradients with respect to x and
// y, from x, y, the result and its gradient d. Integers wrap around like NumPy's; the caller must exclude integer
// division by zero.
#pragma once
#include <cmath>
#include <type_traits>

#include "ops/device/element.h"
#include "ops/kernels/wrapping.h"

namespace anabranch::math {

template <class T> AB_HD T wrapping_sum(T x, T y) {
  return static_cast<T>(static_cast<Wrapping<T>>(x) + static_cast<Wrapping<T>>(y));
}
template <class T> AB_HD T wrapping_difference(T x, T y) {
  return static_cast<T>(static_cast<Wrapping<T>>(x) - static_cast<Wrapping<T>>(y));
}
template <class T> AB_HD T wrapping_product(T x, T y) {
  return static_cast<T>(static_cast<Wrapping<T>>(x) * static_cast<Wrapping<T>>(y));
}
template <class T> AB_HD T negative(T x) { return wrapping_difference(T(0), x); }

// y must not be 0 if T is an integer type.
template <class T> AB_HD T quotient_of(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    if (y == -1) return negative(x);  // the least integer has no negative
  }
  return x / y;
}

// For integers the sign of x, as in C; for floating-point numbers the sign of y, also of zero.
template <class T> AB_HD T remainder_of(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return y == -1 ? T(0) : x % y;
  } else {
    const T r = std::fmod(x, y);
    if (r == 0) return y < 0 ? -T(0) : T(0);
    return (r < 0) != (y < 0) ? r + y : r;
  }
}

template <class T> AB_HD T power_of(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(std::llrint(std::pow(double(x), double(y))));
  else
    return std::pow(x, y);
}

struct Add {
  static constexpr int dx_passes = 1, dy_passes = 1;  // the terms are d, or (-1) its negative, independent of x and y
  template <class T> AB_HD static T of(T x, T y) { return wrapping_sum(x, y); }
  template <class T> AB_HD static T dx(T, T, T, T d) { return d; }
  template <class T> AB_HD static T dy(T, T, T, T d) { return d; }
};
struct Sub {
  static constexpr int dx_passes = 1, dy_passes = -1;
  template <class T> AB_HD static T of(T x, T y) { return wrapping_difference(x, y); }
  template <class T> AB_HD static T dx(T, T, T, T d) { return d; }
  template <class T> AB_HD static T dy(T, T, T, T d) { return negative(d); }
};
struct Mul {
  template <class T> AB_HD static T of(T x, T y) { return wrapping_product(x, y); }
  template <class T> AB_HD static T dx(T, T y, T, T d) { return wrapping_product(d, y); }
  template <class T> AB_HD static T dy(T x, T, T, T d) { return wrapping_product(d, x); }
};
struct Div {  // divides by y in each of its functions
  template <class T> AB_HD static T of(T x, T y) { return quotient_of(x, y); }
  template <class T> AB_HD static T dx(T, T y, T, T d) { return quotient_of(d, y); }
  template <class T> AB_HD static T dy(T, T y, T out, T d) {
    return quotient_of(negative(wrapping_product(d, out)), y);
  }
};
struct Pow {
  template <class T> AB_HD static T of(T x, T y) { return power_of(x, y); }
  template <class T> AB_HD static T dx(T x, T y, T, T d) {
    return static_cast<T>(d * y * power_of(x, static_cast<T>(y - 1)));
  }
  template <class T> AB_HD static T dy(T x, T y, T, T d) { return static_cast<T>(d * std::log(x) * power_of(x, y)); }
};
// In a tie, y gets the gradient.
struct Max {
  template <class T> AB_HD static T of(T x, T y) { return x > y ? x : y; }
  template <class T> AB_HD static T dx(T x, T y, T, T d) { return x > y ? d : T(0); }
  template <class T> AB_HD static T dy(T x, T y, T, T d) { return x > y ? T(0) : d; }
};
struct Min {
  template <class T> AB_HD static T of(T x, T y) { return x < y ? x : y; }
  template <class T> AB_HD static T dx(T x, T y, T, T d) { return x < y ? d : T(0); }
  template <class T> AB_HD static T dy(T x, T y, T, T d) { return x < y ? T(0) : d; }
};
struct Mod {
  template <class T> AB_HD static T of(T x, T y) { return remainder_of(x, y); }
};

}  // namespace anabranch::math
