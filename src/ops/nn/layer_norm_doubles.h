// The functions of layer_norm_rows.h for float64, in plain loops.
#pragma once
#include <cmath>
#include <cstdint>

#include "ops/kernels/sums.h"

namespace anabranch::nn {

inline void normalize_row(const double* x, const double* scale, const double* bias, int64_t width, double epsilon,
                          double* y, double* mean, double* variance) {
  using T = double;
  const T m = sum_of<T>(width, [=](int64_t i) { return x[i]; }) / static_cast<T>(width);
  const T v = sum_of<T>(width, [=](int64_t i) { return (x[i] - m) * (x[i] - m); }) / static_cast<T>(width);
  const T inv = 1 / std::sqrt(v + epsilon);
  for (int64_t i = 0; i < width; ++i) y[i] = (x[i] - m) * inv;
  if (scale) {
    for (int64_t i = 0; i < width; ++i) y[i] *= scale[i];
  }
  if (bias) {
    for (int64_t i = 0; i < width; ++i) y[i] += bias[i];
  }
  *mean = m;
  *variance = v;
}

inline void normalize_grad_row(const double* x, const double* dy, const double* scale, int64_t width, double mean,
                               double inv, double* dx) {
  using T = double;
  const auto h = [=](int64_t i) { return scale ? dy[i] * scale[i] : dy[i]; };
  const T mean_h = sum_of<T>(width, h) / static_cast<T>(width);
  const T slope = sum_of<T>(width, [=](int64_t i) { return h(i) * ((x[i] - mean) * inv); }) / static_cast<T>(width);
  for (int64_t i = 0; i < width; ++i) dx[i] = inv * (h(i) - mean_h - (x[i] - mean) * inv * slope);
}

inline void add_norm_sums(const double* x, const double* dy, int64_t width, double mean, double inv, double* products,
                          double* sums) {
  for (int64_t i = 0; i < width; ++i) {
    products[i] += dy[i] * ((x[i] - mean) * inv);
    sums[i] += dy[i];
  }
}

}  // namespace anabranch::nn
