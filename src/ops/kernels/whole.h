// Real numbers cut to integers, with one result for those that have none, as processors give it.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/device/element.h"

namespace anabranch {

// Cut towards zero. NaN and what is outside of int32 (of int64, for that) become the least integer there; narrower
// types keep the low bits.
template <class T, class Real> AB_HD T whole(Real x) {
  using Wide = std::conditional_t<(sizeof(T) < sizeof(int64_t)), int32_t, int64_t>;
  const Real limit = std::ldexp(Real(1), std::numeric_limits<Wide>::digits);
  return static_cast<T>(x >= -limit && x < limit ? static_cast<Wide>(x) : std::numeric_limits<Wide>::min());
}

}  // namespace anabranch
