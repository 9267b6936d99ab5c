// How many windows an axis has.
#pragma once
#include <cstdint>

#include "base/error.h"

namespace anabranch {

// Windows of `span` elements that start `stride` apart, over an axis of in + before + after elements. Fluid 1.8.5
// divides towards zero: an axis that is up to stride - 1 elements shorter than its window still has one. Rounded up, a
// window also counts if it starts inside and ends beyond the axis.
inline int64_t window_count(int64_t span, int64_t stride, int64_t in, int64_t before, int64_t after, bool up = false) {
  const int64_t room = in + before + after - span + (up ? stride - 1 : 0);
  AB_CHECK(room > -stride, InvalidArgument,
           "the window must be less than one stride ({}) longer than the padded input, got a window of {} for an input "
           "of {} with padding {} and {}",
           stride, span, in, before, after);
  return room / stride + 1;
}

}  // namespace anabranch
