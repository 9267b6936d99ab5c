#include "ops/detection/even_odd.h"

#include <algorithm>
#include <utility>

namespace anabranch::detection {
namespace {

struct Side {
  Point from, to;
  bool of_b = false;
};

// An array with a count.
template <class Element, size_t kMost> class Few {
 public:
  void add(const Element& element) { elements_[count_++] = element; }
  void sort() { std::sort(elements_.begin(), elements_.begin() + static_cast<int64_t>(count_)); }
  const Element& operator[](size_t i) const { return elements_[i]; }
  size_t size() const { return count_; }

 private:
  std::array<Element, kMost> elements_;
  size_t count_ = 0;
};

constexpr size_t kMostSides = 2 * kMostCorners;
using Sides = Few<Side, kMostSides>;
using Heights = Few<double, kMostSides + kMostSides*(kMostSides - 1) / 2>;

void add_sides(const Polygon& polygon, bool of_b, Sides* sides) {
  for (int64_t i = 0; i < polygon.corners; ++i) sides->add({polygon[i], polygon[i + 1], of_b});
}

bool opposite(double a, double b) { return (a > 0 && b < 0) || (a < 0 && b > 0); }

bool cross(const Side& s, const Side& t) {
  return opposite(doubled_area(s.from, s.to, t.from), doubled_area(s.from, s.to, t.to)) &&
         opposite(doubled_area(t.from, t.to, s.from), doubled_area(t.from, t.to, s.to));
}

double height_of_crossing(const Side& s, const Side& t) {
  const double here = doubled_area(t.from, t.to, s.from), there = doubled_area(t.from, t.to, s.to);
  return s.from.y + here / (here - there) * (s.to.y - s.from.y);
}

// Heights between which no sides cross or end, ascending.
Heights heights_of(const Sides& sides) {
  Heights heights;
  for (size_t i = 0; i < sides.size(); ++i) {
    heights.add(sides[i].from.y);
    for (size_t j = i + 1; j < sides.size(); ++j) {
      if (cross(sides[i], sides[j])) heights.add(height_of_crossing(sides[i], sides[j]));
    }
  }
  heights.sort();
  return heights;
}

// The length at height y that is inside of both polygons.
double common_width(const Sides& sides, double y) {
  Few<std::pair<double, bool>, kMostSides> met;  // x, of_b
  for (size_t i = 0; i < sides.size(); ++i) {
    const Side& s = sides[i];
    if ((s.from.y <= y) == (s.to.y <= y)) continue;
    met.add({s.from.x + (y - s.from.y) / (s.to.y - s.from.y) * (s.to.x - s.from.x), s.of_b});
  }
  met.sort();
  bool in_a = false, in_b = false;
  double width = 0;
  for (size_t k = 0; k + 1 < met.size(); ++k) {
    bool& in = met[k].second ? in_b : in_a;
    in = !in;
    if (in_a && in_b) width += met[k + 1].first - met[k].first;
  }
  return width;
}

}  // namespace

bool crosses_itself(const Polygon& polygon) {
  for (int64_t i = 0; i < polygon.corners; ++i) {
    for (int64_t j = i + 2; j < polygon.corners; ++j) {
      if (cross({polygon[i], polygon[i + 1]}, {polygon[j], polygon[j + 1]})) return true;
    }
  }
  return false;
}

double even_odd_area(const Polygon& a, const Polygon& b) {
  Sides sides;
  add_sides(a, false, &sides);
  add_sides(b, true, &sides);
  const Heights heights = heights_of(sides);
  double area = 0;
  // Between two heights the width is linear.
  for (size_t k = 0; k + 1 < heights.size(); ++k) {
    const double low = heights[k], high = heights[k + 1];
    if (high > low) area += common_width(sides, low + (high - low) / 2) * (high - low);
  }
  return area;
}

}  // namespace anabranch::detection
