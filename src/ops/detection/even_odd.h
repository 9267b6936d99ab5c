// Intersection area of polygons whose sides cross, by the even-odd rule: a point is inside if a ray from it passes an
// odd number of sides. Fluid 1.8.5 clips by this rule.
#pragma once
#include <array>
#include <cstdint>

#include "ops/detection/polygons.h"

namespace anabranch::detection {

inline constexpr int64_t kMostCorners = 16;  // of NMS

struct Polygon {
  template <class T> Polygon(const T* p, int64_t n) : corners(n) {
    for (int64_t i = 0; i < n; ++i) at[static_cast<size_t>(i)] = corner(p, i);
  }
  const Point& operator[](int64_t i) const { return at[static_cast<size_t>(i % corners)]; }
  int64_t corners;
  std::array<Point, kMostCorners> at;
};

// Whether two sides that are not neighbors cross.
bool crosses_itself(const Polygon& polygon);
double even_odd_area(const Polygon& a, const Polygon& b);

}  // namespace anabranch::detection
