// Terms of the gradients of folds for one element: from x, its fold, the gradient d of the fold, and the number of
// folded elements.
#pragma once
#include <type_traits>

#include "ops/device/element.h"

namespace anabranch::reduce {

inline constexpr double kNotZero = 1e-12;  // added to a length that is a divisor: zeros have a gradient of 0

struct SumTerm {
  template <class T> AB_HD static T of(T, T, T d, T) { return d; }
};
struct MeanTerm {
  template <class T> AB_HD static T of(T, T, T d, T count) { return static_cast<T>(d / count); }
};
struct ProductTerm {  // NaN for a factor of 0, as in Fluid 1.8.5
  template <class T> AB_HD static T of(T x, T out, T d, T) {
    if (std::is_integral_v<T> && x == 0) return T(0);
    return static_cast<T>(d * out / x);
  }
};
// Every element equal to the extreme gets the whole gradient, as in Fluid 1.8.5.
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
