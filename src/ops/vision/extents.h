// Overflow-checked products of extents and attributes: ResourceExhausted if they do not fit into 64 bits, and kUnknown
// if the first factor is.
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
