// Terms of the gradients of folds, one element at a time: from x, what it was folded to, the gradient d of that, and
// the number of elements that were folded to one.
#pragma once
#include <type_traits>

#include "ops/device/element.h"

namespace anabranch::reduce {

inline constexpr double kNotZero = 1e-12;  // added to a length that divides: zeros have a gradient of 0

struct SumTerm {
  template <class T> AB_HD static T of(T, T, T d, T) { return d; }
};
struct MeanTerm {
  template <class T> AB_HD static T of(T, T, T d, T count) { return static_cast<T>(d / count); }
};
struct ProductTerm {  // of a factor 0 the quotient is not a number, as in the original
  template <class T> AB_HD static T of(T x, T out, T d, T) {
    if (std::is_integral_v<T> && x == 0) return T(0);
    return static_cast<T>(d * out / x);
  }
};
// Every element equal to the extreme gets the whole gradient, as in the original.
struct ExtremeTerm {
  template <class T> AB_HD static T of(T x, T out, T d, T) { return x == out ? d : T(0); }
};
struct LengthTerm {
  template <class T> AB_HD static T of(T x, T out, T d, T) { return d * x / (out + static_cast<T>(kNotZero)); }
};
struct SquaresTerm {
  template <class T> AB_HD static T of(T x, T, T d, T) { return x * (2 * d); }
};
struct SizesTerm {
  template <class T> AB_HD static T of(T x, T, T d, T) { return x > 0 ? d : x < 0 ? -d : x * d; }
};

}  // namespace anabranch::reduce
