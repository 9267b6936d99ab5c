// The sampling positions of grid_sampler, and those that affine_grid makes for it.
#pragma once
#include <cmath>

#include "ops/device/element.h"

namespace anabranch::vision {

// The four pixels around a position, -1 if outside, with their weights and the derivatives of the weights.
template <class T> struct Corners {
  int64_t at[4];
  T weight[4], by_x[4], by_y[4];
};

// Coordinates range from -1, the centre of the first row or column, to 1, that of the last.
template <class T> AB_HD Corners<T> corners(int64_t rows, int64_t columns, T gx, T gy) {
  const T half_x = static_cast<T>(columns - 1) / 2, half_y = static_cast<T>(rows - 1) / 2;
  const T x = (gx + 1) * half_x, y = (gy + 1) * half_y, left = std::floor(x), top = std::floor(y);
  Corners<T> c;
  for (int k = 0; k < 4; ++k) {
    const bool right = k % 2, below = k / 2;
    const T column = right ? left + 1 : left, row = below ? top + 1 : top;
    const T wx = right ? x - left : left + 1 - x, wy = below ? y - top : top + 1 - y;
    const bool inside =
        column >= 0 && column <= static_cast<T>(columns - 1) && row >= 0 && row <= static_cast<T>(rows - 1);
    c.at[k] = inside ? static_cast<int64_t>(row) * columns + static_cast<int64_t>(column) : -1;
    c.weight[k] = wx * wy;
    c.by_x[k] = (right ? wy : -wy) * half_x;
    c.by_y[k] = (below ? wx : -wx) * half_y;
  }
  return c;
}

// Position k of n, from -1 to 1; NaN if n is 1, as in Fluid 1.8.5.
template <class T> AB_HD T position(int64_t k, int64_t n) {
  return T{-1} + static_cast<T>(k) * (T{2} / static_cast<T>(n - 1));
}

}  // namespace anabranch::vision
