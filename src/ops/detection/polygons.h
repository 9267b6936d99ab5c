// Intersection area of simple polygons, given as x, y of their corners; even_odd.h has that of others.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

namespace anabranch::detection {

struct Point {
  double x, y;
};

// Twice the signed area of the triangle a, b, c; positive if counterclockwise.
inline double doubled_area(const Point& a, const Point& b, const Point& c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

// A convex polygon that is clipped by lines: three corners at first, one more with each of three cuts.
class Cut {
 public:
  Cut(const Point& a, const Point& b, const Point& c) : corners_{a, b, c} {}

  // Keeps the part left of the line from a to b.
  void keep_left(const Point& a, const Point& b) {
    const std::array<Point, kMost> old = corners_;
    const int n = count_;
    count_ = 0;
    for (int i = 0; i < n; ++i) {
      const Point &p = old[static_cast<size_t>(i)], &q = old[static_cast<size_t>((i + 1) % n)];
      const double here = doubled_area(a, b, p), there = doubled_area(a, b, q);
      if (here >= 0) add(p);
      if ((here > 0 && there < 0) || (here < 0 && there > 0)) {
        const double t = here / (here - there);
        add({p.x + t * (q.x - p.x), p.y + t * (q.y - p.y)});
      }
    }
  }

  double area() const {
    double twice = 0;
    for (int i = 2; i < count_; ++i) {
      twice += doubled_area(corners_[0], corners_[static_cast<size_t>(i) - 1], corners_[static_cast<size_t>(i)]);
    }
    return twice / 2;
  }

 private:
  static constexpr int kMost = 8;
  void add(const Point& p) {
    if (count_ < kMost) corners_[static_cast<size_t>(count_++)] = p;
  }

  std::array<Point, kMost> corners_{};
  int count_ = 3;
};

// Intersection area of two counterclockwise triangles.
inline double common_area(const std::array<Point, 3>& a, const std::array<Point, 3>& b) {
  Cut cut(a[0], a[1], a[2]);
  for (size_t i = 0; i < 3; ++i) cut.keep_left(b[i], b[(i + 1) % 3]);
  return cut.area();
}

template <class T> Point corner(const T* p, int64_t i) {
  return {static_cast<double>(p[2 * i]), static_cast<double>(p[2 * i + 1])};
}

template <class T> double signed_area(const T* p, int64_t corners) {
  double twice = 0;
  for (int64_t i = 2; i < corners; ++i) twice += doubled_area(corner(p, 0), corner(p, i - 1), corner(p, i));
  return twice / 2;
}

// The i-th triangle of the fan around the first corner, made counterclockwise; the sign says whether it was flipped.
template <class T> std::array<Point, 3> fan(const T* p, int64_t i, double* sign) {
  std::array<Point, 3> made{corner(p, 0), corner(p, i - 1), corner(p, i)};
  *sign = doubled_area(made[0], made[1], made[2]) < 0 ? -1.0 : 1.0;
  if (*sign < 0) std::swap(made[1], made[2]);
  return made;
}

// A polygon is the signed sum of the triangles of a fan, so the intersection is a signed sum, too.
template <class T> double common_area(const T* a, const T* b, int64_t corners) {
  double sum = 0;
  for (int64_t i = 2; i < corners; ++i) {
    double sign_a = 0;
    const auto of_a = fan(a, i, &sign_a);
    for (int64_t j = 2; j < corners; ++j) {
      double sign_b = 0;
      const auto of_b = fan(b, j, &sign_b);
      sum += sign_a * sign_b * common_area(of_a, of_b);
    }
  }
  return std::abs(sum);
}

}  // namespace anabranch::detection
