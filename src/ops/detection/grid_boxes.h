// Boxes of given sizes around the points of a grid, shared by prior_box, density_prior_box and anchor_generator. These
// differ in the sizes at a point, in the unit, and in clipping.
#pragma once
#include <algorithm>
#include <vector>

#include "ops/declare/checks.h"
#include "ops/detection/boxes.h"

namespace anabranch::detection {

// A box relative to a point: the offset of its centre, and half its sides.
template <class T> struct PlacedBox { T dx, dy, half_w, half_h; };

// Point (row, column) of the grid is at x = x0 + column * step_x, and y likewise; boxes are in units of unit_x, unit_y.
template <class T> struct PointGrid {
  int64_t rows, columns;
  T x0, y0, step_x, step_y, unit_x, unit_y;
  bool inside;  // bounds left and top by 0, right and bottom by 1
  bool clip;    // bounds all sides to [0, 1]
};

template <class T> void place(const PointGrid<T>& g, T x, T y, const PlacedBox<T>& b, T* to) {
  to[0] = (x + b.dx - b.half_w) / g.unit_x;
  to[1] = (y + b.dy - b.half_h) / g.unit_y;
  to[2] = (x + b.dx + b.half_w) / g.unit_x;
  to[3] = (y + b.dy + b.half_h) / g.unit_y;
  for (int k = 0; k < 4; ++k) {
    if (g.clip || (g.inside && k < 2)) to[k] = std::max(to[k], T(0));
    if (g.clip || (g.inside && k >= 2)) to[k] = std::min(to[k], T(1));
  }
}

// Writes the boxes of all points, and the same four variances for each.
template <class T>
void fill_grid(const KernelContext& c, const PointGrid<T>& g, const std::vector<PlacedBox<T>>& at_point,
               const std::vector<float>& variances, T* boxes, T* variance_out) {
  const int64_t n = static_cast<int64_t>(at_point.size());
  c.parallel_each(g.rows * g.columns, std::max<int64_t>(1, kBoxGrain / std::max<int64_t>(1, n)),
                  [&, boxes, variance_out, n](int64_t p) {
                    const T x = g.x0 + static_cast<T>(p % g.columns) * g.step_x;
                    const T y = g.y0 + static_cast<T>(p / g.columns) * g.step_y;
                    for (int64_t k = 0; k < n; ++k) {
                      const int64_t at = (p * n + k) * 4;
                      place(g, x, y, at_point[static_cast<size_t>(k)], boxes + at);
                      for (size_t v = 0; v < 4; ++v) variance_out[at + static_cast<int64_t>(v)] = variances[v];
                    }
                  });
}

inline void check_variances(const InferContext& c) {
  const auto& v = c.attr<std::vector<float>>("variances");
  AB_CHECK(v.size() == 4, InvalidArgument, "variances must have 4 numbers, got {}", v.size());
  for (float x : v) AB_CHECK(x > 0, InvalidArgument, "variances must be above 0, got {}", x);
}

template <class T> void check_positive(const InferContext& c, const char* attr) {
  for (T x : c.attr<std::vector<T>>(attr)) AB_CHECK(x > 0, InvalidArgument, "{} must be above 0, got {}", attr, x);
}

inline void check_steps(const InferContext& c) {
  for (const char* attr : {"step_w", "step_h"}) {
    const float step = c.attr<float>(attr);
    AB_CHECK(step >= 0, InvalidArgument, "{} must be at least 0 (0: from the images), got {}", attr, step);
  }
}

// Boxes and Variances [rows, columns, n, 4] of the grid of an image [N, channels, rows, columns].
inline void set_grid_outputs(InferContext& c, const char* boxes, int64_t n) {
  const Meta& input = c.in("Input");
  for (const char* slot : {boxes, "Variances"}) {
    c.set_out(slot, Shape{input.shape[2], input.shape[3], n, 4}, input.dtype);
  }
}

// The grid of cell centres: their spacing in an image with the cells of the feature map.
template <class T>
PointGrid<T> cells_of(const Shape& feature, const Shape& image, float step_w, float step_h, float offset, bool clip) {
  PointGrid<T> g{feature[2], feature[3], 0, 0, step_w, step_h, static_cast<T>(image[3]), static_cast<T>(image[2]),
                 false,      clip};
  if (step_w == 0 || step_h == 0) {
    g.step_x = g.unit_x / static_cast<T>(g.columns);
    g.step_y = g.unit_y / static_cast<T>(g.rows);
  }
  g.x0 = static_cast<T>(offset) * g.step_x;
  g.y0 = static_cast<T>(offset) * g.step_y;
  return g;
}

}  // namespace anabranch::detection
