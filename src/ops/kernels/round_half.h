// The nearest integer, halves away from zero, as std::round gives it - in operations that compilers have vectors for.
#pragma once
#include <cmath>

#include "ops/device/element.h"

namespace anabranch {

template <class T> AB_HD T round_half_away(T x) {
  const T half = std::copysign(T(0.5), x), even = std::nearbyint(x), away = even + (half + half);
  return x - even == half ? away : even;  // exact: a half that went towards zero
}

}  // namespace anabranch
