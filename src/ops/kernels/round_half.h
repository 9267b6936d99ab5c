// The nearest integer, halves away from zero, as std::round gives it - in operations that compilers have vectors for.
#pragma once
#include <cmath>

namespace anabranch {

template <class T> T round_half_away(T x) {
  const T cut = std::trunc(x), rest = x - cut;  // exact
  const T up = rest >= T(0.5) ? T(1) : T(0), down = rest <= T(-0.5) ? T(1) : T(0);
  return std::copysign(cut + (up - down), x);
}

}  // namespace anabranch
