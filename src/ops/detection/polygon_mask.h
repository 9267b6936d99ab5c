// Rasterizes polygons on a small grid, pixel by pixel like the tools of the COCO data set: sides are traced on a grid
// five times as fine, and a column of pixels switches between inside and outside where a side crosses its middle.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "ops/detection/rois.h"

namespace anabranch::detection {

class PolygonMask {
 public:
  explicit PolygonMask(int64_t side) : side_(side) {}

  // Corners [x, y] in pixels of the grid. Sets `mask` [side, side] to 1 inside the polygon and leaves the rest.
  void add(const std::vector<double>& corners, std::vector<int32_t>* mask) {
    changes_.assign(static_cast<size_t>(side_ * side_ + 1), 0);
    const size_t n = corners.size() / 2;
    for (size_t k = 0; k < n; ++k) {
      const size_t next = (k + 1) % n;
      trace(fine(corners[2 * k]), fine(corners[2 * k + 1]), fine(corners[2 * next]), fine(corners[2 * next + 1]));
    }
    // Visits columns one after another; a change at the end of one is a change at the start of the next.
    int inside = 0;
    for (int64_t k = 0; k < side_ * side_; ++k) {
      inside ^= changes_[static_cast<size_t>(k)];
      if (inside) (*mask)[static_cast<size_t>(k % side_ * side_ + k / side_)] = 1;
    }
  }

 private:
  static constexpr int64_t kFine = 5, kMiddle = 2;  // subpixels per pixel, and subpixels before its middle
  static constexpr int64_t kFar = int64_t{1} << 40;

  static int64_t fine(double at) { return clamped(static_cast<double>(kFine) * at + 0.5, -kFar, kFar); }

  // Rounds towards 0 for negative numbers, as the COCO tools do.
  static int64_t halves_up(double at) {
    const double raised = at + 0.5;
    return static_cast<int64_t>(raised);
  }

  // Records where a side crosses the middles of columns between fine columns `left` and left + 1.
  void trace(int64_t x0, int64_t y0, int64_t x1, int64_t y1) {
    const int64_t dx = std::abs(x1 - x0), dy = std::abs(y1 - y0);
    if ((dx >= dy && x0 > x1) || (dx < dy && y0 > y1)) {
      std::swap(x0, x1);
      std::swap(y0, y1);
    }
    for (int64_t column = 0; column < side_; ++column) {
      const int64_t left = kFine * column + kMiddle;
      if (std::min(x0, x1) > left || std::max(x0, x1) <= left) continue;
      change(column, dx >= dy ? height_of_flat(x0, y0, y1, dx, left) : height_of_steep(x0, y0, x1, dy, left));
    }
  }

  // The lower of the two points next to the crossing.
  static int64_t height_of_flat(int64_t x0, int64_t y0, int64_t y1, int64_t dx, int64_t left) {
    const double slope = static_cast<double>(y1 - y0) / static_cast<double>(dx);
    const auto at = [&](int64_t x) { return halves_up(static_cast<double>(y0) + slope * static_cast<double>(x - x0)); };
    return std::min(at(left), at(left + 1));
  }
  static int64_t height_of_steep(int64_t x0, int64_t y0, int64_t x1, int64_t dy, int64_t left) {
    const double slope = static_cast<double>(x1 - x0) / static_cast<double>(dy);
    const auto crossed = [&](int64_t t) {
      const int64_t x = halves_up(static_cast<double>(x0) + slope * static_cast<double>(t));
      return slope > 0 ? x > left : x <= left;
    };
    // The first point after the crossing.
    int64_t low = 0, high = dy;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (crossed(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return y0 + low - 1;
  }

  void change(int64_t column, int64_t fine_height) {
    const double at = (static_cast<double>(fine_height) + 0.5) / static_cast<double>(kFine) - 0.5;
    const auto row = static_cast<int64_t>(std::ceil(std::clamp(at, 0.0, static_cast<double>(side_))));
    changes_[static_cast<size_t>(column * side_ + row)] ^= 1;
  }

  int64_t side_;
  std::vector<uint8_t> changes_;  // at each pixel, column by column
};

}  // namespace anabranch::detection
