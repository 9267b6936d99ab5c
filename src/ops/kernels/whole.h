// Truncates floating-point numbers to integers, with the result of x86 processors for numbers out of range.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/device/element.h"

namespace anabranch {

// Truncates towards zero. NaN and numbers outside of int32 (or int64) become its least value; narrower types keep the
// low bits.
template <class T, class Real> AB_HD T whole(Real x) {
  using Wide = std::conditional_t<(sizeof(T) < sizeof(int64_t)), int32_t, int64_t>;
  const Real limit = std::ldexp(Real(1), std::numeric_limits<Wide>::digits);
  return static_cast<T>(x >= -limit && x < limit ? static_cast<Wide>(x) : std::numeric_limits<Wide>::min());
}

}  // namespace anabranch
