// Losses of the difference of two sides: their gradients are the same but for the sign.
#pragma once
#include "ops/kernels/outputs.h"

namespace anabranch::loss {

// slope(i) goes to `plus`, its negative to `minus`; either may be unwanted.
template <class T, class Slope>
void write_sides(const KernelContext& c, Out plus, Out minus, int64_t n, Slope&& slope) {
  T *up = wanted<T>(c, plus), *down = wanted<T>(c, minus);
  for (int64_t i = 0; i < n; ++i) {
    const T s = slope(i);
    if (up) up[i] = s;
    if (down) down[i] = -s;
  }
}

}  // namespace anabranch::loss
