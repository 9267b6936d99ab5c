// Products of extents and attributes, which may be any numbers: ResourceExhausted where they do not fit into 64 bits,
// and kUnknown where the first one is.
#pragma once
#include <cstdint>

#include "core/shape.h"

namespace anabranch::vision {

inline int64_t product(int64_t extent, int64_t by) {
  int64_t made = kUnknown;
  AB_CHECK(extent < 0 || !__builtin_mul_overflow(extent, by, &made), ResourceExhausted,
           "extents must fit into 64 bits, got {} times {}", extent, by);
  return made;
}

}  // namespace anabranch::vision
