// Losses of the difference of two operands: their gradients differ only in the sign.
#pragma once
#include "ops/kernels/outputs.h"

namespace anabranch::loss {

// Writes slope(i) to `plus` and its negative to `minus`; either may be null.
template <class T, class Slope>
void write_sides(const KernelContext& c, Out plus, Out minus, int64_t n, Slope&& slope) {
  T *up = needed<T>(c, plus), *down = needed<T>(c, minus);
  for (int64_t i = 0; i < n; ++i) {
    const T s = slope(i);
    if (up) up[i] = s;
    if (down) down[i] = -s;
  }
}

}  // namespace anabranch::loss
