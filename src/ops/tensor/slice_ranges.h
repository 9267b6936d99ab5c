// The positions that a slice takes on each axis of a tensor, from starts, ends and strides by Python's rules.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/shape.h"

namespace anabranch::tensor {

// Positions begin, begin + step, ..., `count` of them.
struct SliceRange {
  int64_t begin = 0, step = 1, count = 0;
};

struct SliceRanges {
  std::array<SliceRange, kMaxRank> of;
  std::array<bool, kMaxRank> open{};  // axes with an unknown extent or position
};

// A list for all axes that are sliced: axes, and for each of them the other numbers.
struct SliceLists {
  std::vector<int64_t> axes, starts, ends, strides;
  std::vector<int64_t> flags;  // while a program is built, per axis: 1 if all of its numbers are known
  bool known = true;
};

// InvalidArgument if the lists do not fit each other or the shape.
SliceRanges ranges_of(const SliceLists& lists, const Shape& whole);

}  // namespace anabranch::tensor
