// Logits of one sample: bounded below, and as logarithms of probabilities.
#pragma once
#include <algorithm>

#include "ops/device/element.h"

namespace anabranch {

inline constexpr double kLeastShifted = -64;

// A logit minus the maximum of its column, bounded below; keeps NaN.
template <class T> AB_HD T shifted(T x, T top, double least = kLeastShifted) {
  return std::max(x - top, static_cast<T>(least));
}

template <class T> struct Norm {  // of a column
  T top, log_sum;
  AB_HD T log_softmax(T x) const { return shifted(x, top) - log_sum; }
};

}  // namespace anabranch
