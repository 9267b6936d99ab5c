// Operations that fold two elements when axes are reduced: sums, products, extremes, logic. `start` is the fold of no
// elements, `Wide` the type of partial results.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/device/element.h"

namespace anabranch {

template <class T> struct FoldSum {
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, T>;
  static constexpr T start = T(0);
  template <class A> AB_HD static A join(A a, A b) {
    if constexpr (std::is_integral_v<A> && !std::is_same_v<A, bool>) {
      return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));  // wraps around like NumPy's integers
    } else {
      return a + b;
    }
  }
};
// Sums over a function of each element.
template <class T> struct FoldSquares : FoldSum<T> {
  AB_HD static T lift(T x) { return x * x; }
};
template <class T> struct FoldSizes : FoldSum<T> {
  static constexpr bool in_many_parts = true;
  AB_HD static T lift(T x) { return std::abs(x); }
};
template <class T> struct FoldProd {
  using Wide = T;
  static constexpr T start = T(1);
  AB_HD static T join(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
      return a * b;
  }
};
template <class T> struct FoldMax {
  using Wide = T;
  static constexpr bool in_many_parts = true;
  static constexpr T start =
      std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  AB_HD static T join(T a, T b) { return a > b ? a : b; }
};
template <class T> struct FoldMin {
  using Wide = T;
  static constexpr bool in_many_parts = true;
  static constexpr T start =
      std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  AB_HD static T join(T a, T b) { return a < b ? a : b; }
};
struct FoldAll {
  using Wide = bool;
  static constexpr bool in_many_parts = true;
  static constexpr bool start = true;
  AB_HD static bool join(bool a, bool b) { return a && b; }
};
struct FoldAny {
  using Wide = bool;
  static constexpr bool in_many_parts = true;
  static constexpr bool start = false;
  AB_HD static bool join(bool a, bool b) { return a || b; }
};

template <class Fold, class T> AB_HD T lifted(T x) {
  if constexpr (requires { Fold::lift(x); })
    return Fold::lift(x);
  else
    return x;
}

}  // namespace anabranch
