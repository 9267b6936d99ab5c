// Softmax over the middle axis of a block [classes, inner]: out[k, j] = exp(x[k, j] - m[j]) / sum_k of the same, with
// m[j] the largest of column j. x and out may be the same array.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/kernels/simd.h"

namespace anabranch {

inline constexpr int64_t kSoftmaxColumns = 64;  // columns done together: their sums fit on the stack

// One row of classes; returns m + log(sum), the logarithm of the sum of exp(x).
inline float softmax_row(const float* x, int64_t classes, float* out) {
  const float top = simd::max_of(x, classes);
  simd::affine(x, 1.0f, -top, out, classes);
  simd::exp(out, out, classes);
  const float sum = simd::sum(out, classes);
  simd::affine(out, 1.0f / sum, 0.0f, out, classes);
  return top + std::log(sum);
}

inline double softmax_row(const double* x, int64_t classes, double* out) {
  const double top = *std::max_element(x, x + classes);
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum += out[k] = std::exp(x[k] - top);
  for (int64_t k = 0; k < classes; ++k) out[k] /= sum;
  return top + std::log(sum);
}

// At most kSoftmaxColumns columns whose rows are `stride` apart.
template <class T>
void softmax_columns(const T* x, int64_t classes, int64_t stride, int64_t columns, T* out, T* log_norm) {
  T top[kSoftmaxColumns], sum[kSoftmaxColumns];
  std::copy(x, x + columns, top);
  for (int64_t k = 1; k < classes; ++k) {
    for (int64_t j = 0; j < columns; ++j) top[j] = std::max(top[j], x[k * stride + j]);
  }
  std::fill(sum, sum + columns, T{0});
  for (int64_t k = 0; k < classes; ++k) {
    for (int64_t j = 0; j < columns; ++j) sum[j] += out[k * stride + j] = std::exp(x[k * stride + j] - top[j]);
  }
  for (int64_t k = 0; k < classes; ++k) {
    for (int64_t j = 0; j < columns; ++j) out[k * stride + j] /= sum[j];
  }
  if (!log_norm) return;
  for (int64_t j = 0; j < columns; ++j) log_norm[j] = top[j] + std::log(sum[j]);
}

// log_norm: [inner], or null.
template <class T> void softmax_block(const T* x, int64_t classes, int64_t inner, T* out, T* log_norm) {
  if (inner == 1) {
    const T norm = softmax_row(x, classes, out);
    if (log_norm) *log_norm = norm;
    return;
  }
  for (int64_t j = 0; j < inner; j += kSoftmaxColumns) {
    softmax_columns(x + j, classes, inner, std::min(kSoftmaxColumns, inner - j), out + j,
                    log_norm ? log_norm + j : nullptr);
  }
}

// dx = y (dy - sum_k y dy) over the middle axis of a block [classes, inner].
template <class T> void softmax_grad_block(const T* y, const T* dy, int64_t classes, int64_t inner, T* dx) {
  T dot[kSoftmaxColumns];
  for (int64_t from = 0; from < inner; from += kSoftmaxColumns) {
    const int64_t columns = std::min(kSoftmaxColumns, inner - from);
    std::fill(dot, dot + columns, T{0});
    for (int64_t k = 0; k < classes; ++k) {
      const int64_t row = k * inner + from;
      for (int64_t j = 0; j < columns; ++j) dot[j] += y[row + j] * dy[row + j];
    }
    for (int64_t k = 0; k < classes; ++k) {
      const int64_t row = k * inner + from;
      for (int64_t j = 0; j < columns; ++j) dx[row + j] = y[row + j] * (dy[row + j] - dot[j]);
    }
  }
}

}  // namespace anabranch
