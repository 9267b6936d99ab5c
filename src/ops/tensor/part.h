// Parts of tensors: what lies inside, and the loop over it.
#pragma once
#include <array>

#include "ops/declare/declare.h"
#include "ops/kernels/nd_loop.h"

namespace anabranch::tensor {

inline constexpr std::array<int64_t, kMaxRank> kOrigin{};

// The part of `extents` from `offsets` on lies inside of `whole`; extents that are not known yet pass.
inline void check_inside(const Shape& whole, const int64_t* offsets, const Shape& extents) {
  for (int i = 0; i < whole.rank(); ++i) {
    const bool fits = whole[i] < 0 || extents[i] < 0 || offsets[i] <= whole[i] - extents[i];
    AB_CHECK(fits, InvalidArgument, "a part of {} at {} must lie inside of axis {} of {}", extents[i], offsets[i], i,
             whole.str());
  }
}

// The loop over a part: operand 0 is the part, dense; operand 1 its place in the whole, from *offset on.
inline NdLoop<2> place_of(const Shape& part, const Shape& whole, const int64_t* offsets, int64_t* offset) {
  const auto mine = dense_strides(part), theirs = dense_strides(whole);
  NdLoop<2> loop;
  *offset = 0;
  for (int i = 0; i < part.rank(); ++i) {
    *offset += offsets[i] * theirs[i];
    loop.add_axis(part[i], {mine[i], theirs[i]});
  }
  return loop;
}

}  // namespace anabranch::tensor
