// The nearest integer, halves away from zero, like std::round, in operations that compilers vectorize.
#pragma once
#include <cmath>

#include "ops/device/element.h"

namespace anabranch {

template <class T> AB_HD T round_half_away(T x) {
  const T half = std::copysign(T(0.5), x), even = std::nearbyint(x), away = even + (half + half);
  return x - even == half ? away : even;  // exact: a half that was rounded towards zero
}

}  // namespace anabranch
