// Softmax over the middle axis of a block [classes, inner]: out[k, j] = e[k, j] / sum_k e[k, j] with e[k, j] =
// exp(max(x[k, j] - m[j], -64)) and m[j] the maximum of column j. The bound is that of Fluid 1.8.5: no probability
// becomes 0, so its logarithm is finite and training recovers after a step that was too large. A NaN makes its column
// NaN. out may alias x.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/shape.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/simd.h"
#include "ops/nn/softmax_functions.h"

namespace anabranch {

// A tensor as [outer, classes, inner].
struct ClassAxis {
  int64_t outer, classes, inner;
  ClassAxis(const Shape& s, int64_t axis) {
    const int a = normal_axis(axis, s.rank(), "axis");
    outer = s.numel(0, a);
    classes = s[a];
    inner = s.numel(a + 1, s.rank());
  }
  int64_t samples() const { return outer * inner; }
  int64_t block() const { return classes * inner; }
  int64_t blocks() const { return block() ? outer : 0; }
  int64_t grain() const { return kMathGrain / std::max<int64_t>(1, block()) + 1; }  // of blocks
};

inline constexpr int64_t kSoftmaxColumns = 64;  // columns processed together: their sums fit on the stack

// One row of classes, bounded below by `least` less than its maximum.
inline Norm<float> softmax_row(const float* x, int64_t classes, float* out, double least = kLeastShifted) {
  const float top = simd::max_of(x, classes);
  simd::shift(x, top, static_cast<float>(least), out, classes);
  simd::exp(out, out, classes);
  const float sum = simd::sum(out, classes);
  simd::affine(out, 1.0f / sum, 0.0f, out, classes);
  return {top, std::log(sum)};
}

inline Norm<double> softmax_row(const double* x, int64_t classes, double* out, double least = kLeastShifted) {
  const double top = *std::max_element(x, x + classes);
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum += out[k] = std::exp(shifted(x[k], top, least));
  for (int64_t k = 0; k < classes; ++k) out[k] /= sum;
  return {top, std::log(sum)};
}

inline constexpr int64_t kShortRow = 32;
inline constexpr int64_t kShortRows = 8;  // short rows computed together, so that no sum waits for its own last step

// Folds each of `rows` short rows in order: part[r] = fold(part[r], r, k) for all k.
template <class T, class Fold> void fold_short_rows(int64_t rows, int64_t classes, T* part, Fold fold) {
  if (rows == kShortRows) {
    for (int64_t k = 0; k < classes; ++k) {
      for (int64_t r = 0; r < kShortRows; ++r) part[r] = fold(part[r], r, k);
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < classes; ++k) part[r] = fold(part[r], r, k);
  }
}

// fn(first, count) for groups of kShortRows rows, and for the rest.
template <class Fn> void each_short_rows(int64_t begin, int64_t end, Fn&& fn) {
  for (int64_t first = begin; first < end; first += kShortRows) fn(first, std::min(kShortRows, end - first));
}

inline void shift_short_rows(const float* x, int64_t rows, int64_t classes, float* out) {
  float top[kShortRows];
  for (int64_t r = 0; r < rows; ++r) top[r] = x[r * classes];
  fold_short_rows(rows, classes, top, [=](float t, int64_t r, int64_t k) {
    const float v = x[r * classes + k];
    return v > t ? v : t;
  });
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < classes; ++k) {
      const float v = x[r * classes + k] - top[r];
      out[r * classes + k] = v < static_cast<float>(kLeastShifted) ? static_cast<float>(kLeastShifted) : v;
    }
  }
}

inline void divide_short_rows(int64_t rows, int64_t classes, float* x) {
  float sum[kShortRows] = {};
  fold_short_rows(rows, classes, sum, [=](float s, int64_t r, int64_t k) { return s + x[r * classes + k]; });
  for (int64_t r = 0; r < rows; ++r) {
    const float factor = 1.0f / sum[r];
    for (int64_t k = 0; k < classes; ++k) x[r * classes + k] *= factor;
  }
}

// Rows of a few classes: several at a time, so that the exponentials fill vectors.
inline void softmax_short_rows(const float* x, int64_t rows, int64_t classes, float* out) {
  const int64_t together = 1024 / classes;
  for (int64_t first = 0; first < rows; first += together) {
    const int64_t end = std::min(rows, first + together), at = first * classes;
    each_short_rows(first, end, [=](int64_t row, int64_t count) {
      shift_short_rows(x + row * classes, count, classes, out + row * classes);
    });
    simd::exp(out + at, out + at, end * classes - at);
    each_short_rows(first, end,
                    [=](int64_t row, int64_t count) { divide_short_rows(count, classes, out + row * classes); });
  }
}

// dx = y (dy - sum_k y dy) for rows of a few classes; dx may alias dy.
inline void softmax_grad_short_rows(const float* y, const float* dy, int64_t rows, int64_t classes, float* dx) {
  each_short_rows(0, rows, [=](int64_t first, int64_t count) {
    const float *own = y + first * classes, *from = dy + first * classes;
    float dot[kShortRows] = {};
    fold_short_rows(count, classes, dot,
                    [=](float s, int64_t r, int64_t k) { return s + own[r * classes + k] * from[r * classes + k]; });
    float* to = dx + first * classes;
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t k = 0; k < classes; ++k)
        to[r * classes + k] = own[r * classes + k] * (from[r * classes + k] - dot[r]);
    }
  });
}

// The exponentials of a row of columns, in place.
inline void exp_in_place(float* x, int64_t n) { simd::exp(x, x, n); }
inline void exp_in_place(double* x, int64_t n) {
  for (int64_t j = 0; j < n; ++j) x[j] = std::exp(x[j]);
}

// At most kSoftmaxColumns columns whose rows are `stride` apart.
template <class T>
void softmax_columns(const T* x, int64_t classes, int64_t stride, int64_t columns, T* out, Norm<T>* norm) {
  T top[kSoftmaxColumns], sum[kSoftmaxColumns];
  std::copy(x, x + columns, top);
  for (int64_t k = 1; k < classes; ++k) {
    for (int64_t j = 0; j < columns; ++j) top[j] = std::max(top[j], x[k * stride + j]);
  }
  std::fill(sum, sum + columns, T{0});
  for (int64_t k = 0; k < classes; ++k) {
    T* row = out + k * stride;
    for (int64_t j = 0; j < columns; ++j) row[j] = shifted(x[k * stride + j], top[j]);
    exp_in_place(row, columns);
    for (int64_t j = 0; j < columns; ++j) sum[j] += row[j];
  }
  for (int64_t k = 0; k < classes; ++k) {
    for (int64_t j = 0; j < columns; ++j) out[k * stride + j] /= sum[j];
  }
  if (!norm) return;
  for (int64_t j = 0; j < columns; ++j) norm[j] = {top[j], std::log(sum[j])};
}

// done(first, columns, norms): after the softmax of columns [first, first + columns).
template <class T, class Done> void softmax_block(const T* x, int64_t classes, int64_t inner, T* out, Done&& done) {
  if (inner == 1) {
    const Norm<T> norm = softmax_row(x, classes, out);
    return done(0, 1, &norm);
  }
  Norm<T> norms[kSoftmaxColumns];
  for (int64_t j = 0; j < inner; j += kSoftmaxColumns) {
    const int64_t columns = std::min(kSoftmaxColumns, inner - j);
    softmax_columns(x + j, classes, inner, columns, out + j, norms);
    done(j, columns, norms);
  }
}

template <class T> void softmax_block(const T* x, int64_t classes, int64_t inner, T* out) {
  softmax_block(x, classes, inner, out, [](int64_t, int64_t, const Norm<T>*) {});
}

// Blocks of [classes, inner], one after another.
template <class T> void softmax_blocks(const T* x, int64_t blocks, int64_t classes, int64_t inner, T* out) {
  if constexpr (std::is_same_v<T, float>) {
    if (inner == 1 && classes <= kShortRow) return softmax_short_rows(x, blocks, classes, out);
  }
  const int64_t block = classes * inner;
  for (int64_t i = 0; i < blocks; ++i) softmax_block(x + i * block, classes, inner, out + i * block);
}

inline void softmax_grad_row(const float* y, const float* dy, int64_t classes, float* dx) {
  const float dot = simd::dot(y, dy, classes);
  for (int64_t k = 0; k < classes; ++k) dx[k] = y[k] * (dy[k] - dot);
}

// dx = y (dy - sum_k y dy) over the middle axis of a block [classes, inner].
template <class T> void softmax_grad_block(const T* y, const T* dy, int64_t classes, int64_t inner, T* dx) {
  if constexpr (std::is_same_v<T, float>) {
    if (inner == 1 && classes > kShortRow) return softmax_grad_row(y, dy, classes, dx);
  }
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

// Blocks of [classes, inner], one after another.
template <class T>
void softmax_grad_blocks(const T* y, const T* dy, int64_t blocks, int64_t classes, int64_t inner, T* dx) {
  if constexpr (std::is_same_v<T, float>) {
    if (inner == 1 && classes <= kShortRow) return softmax_grad_short_rows(y, dy, blocks, classes, dx);
  }
  const int64_t block = classes * inner;
  for (int64_t i = 0; i < blocks; ++i)
    softmax_grad_block(y + i * block, dy + i * block, classes, inner, dx + i * block);
}

}  // namespace anabranch
