// Slices of tensors: bounds checks, and the loop over a slice.
#pragma once
#include <array>

#include "ops/declare/declare.h"
#include "ops/kernels/nd_loop.h"

namespace anabranch::tensor {

inline constexpr std::array<int64_t, kMaxRank> kOrigin{};

// The slice of `extents` at `offsets` must be within `whole`; unknown extents pass.
inline void check_inside(const Shape& whole, const int64_t* offsets, const Shape& extents) {
  for (int i = 0; i < whole.rank(); ++i) {
    const bool fits = whole[i] < 0 || extents[i] < 0 || offsets[i] <= whole[i] - extents[i];
    AB_CHECK(fits, InvalidArgument, "a slice of {} at {} must be within axis {} of {}", extents[i], offsets[i], i,
             whole.str());
  }
}

// The loop over a slice: operand 0 is the slice, dense; operand 1 its region in the whole, from *offset on.
inline NdLoop<2> slice_loop(const Shape& part, const Shape& whole, const int64_t* offsets, int64_t* offset) {
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
