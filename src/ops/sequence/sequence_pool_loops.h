// Pools one sequence into a row, and its gradient.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "base/error.h"

namespace anabranch::sequence {

enum class Pool { kSum, kAverage, kSqrt, kMax, kLast, kFirst };

// The divisor of the sum of a sequence.
template <class T> T divisor(Pool pool, int64_t length) {
  if (pool == Pool::kAverage) return static_cast<T>(length);
  return pool == Pool::kSqrt ? std::sqrt(static_cast<T>(length)) : T{1};
}

inline constexpr int64_t kAtOnce = 16;  // columns whose sums stay in registers

// The sums of kCount columns of `length` rows.
template <class T, class Columns> void sum_columns(const T* x, int64_t length, int64_t width, Columns columns, T* out) {
  T sums[kAtOnce];
  for (int64_t j = 0; j < columns; ++j) sums[j] = x[j];
  for (int64_t r = 1; r < length; ++r) {
    x += width;
    for (int64_t j = 0; j < columns; ++j) sums[j] += x[j];
  }
  for (int64_t j = 0; j < columns; ++j) out[j] = sums[j];
}

template <class T> void pool_sum(Pool pool, const T* x, int64_t length, int64_t width, T* out) {
  int64_t from = 0;
  for (; from + kAtOnce <= width; from += kAtOnce) {
    sum_columns(x + from, length, width, std::integral_constant<int64_t, kAtOnce>(), out + from);
  }
  sum_columns(x + from, length, width, width - from, out + from);
  if (pool == Pool::kSum) return;
  const T over = divisor<T>(pool, length);
  for (int64_t j = 0; j < width; ++j) out[j] /= over;
}

template <class T> void pool_max(const T* x, int64_t from, int64_t to, int64_t width, T* out, int32_t* index) {
  for (int64_t j = 0; j < width; ++j) {
    int64_t best = from;
    for (int64_t r = from + 1; r < to; ++r) {
      if (x[r * width + j] > x[best * width + j]) best = r;
    }
    out[j] = x[best * width + j];
    if (index) index[j] = static_cast<int32_t>(best);
  }
}

// The gradient of one non-empty sequence.
template <class T> void grad_sequence(Pool pool, const T* dout, int64_t length, int64_t width, T* dx) {
  if (pool == Pool::kFirst || pool == Pool::kLast) {
    std::fill(dx, dx + length * width, T{0});
    std::copy(dout, dout + width, dx + (pool == Pool::kFirst ? 0 : length - 1) * width);
    return;
  }
  const T over = divisor<T>(pool, length);
  for (int64_t r = 0; r < length; ++r) {
    for (int64_t j = 0; j < width; ++j) dx[r * width + j] = dout[j] / over;
  }
}

// The row with the maximum gets the gradient. Indices come from memory: they are checked.
template <class T>
void grad_max(const T* dout, const int32_t* index, int64_t first, int64_t last, int64_t width, T* dx) {
  std::fill(dx + first * width, dx + last * width, T{0});
  for (int64_t j = 0; j < width; ++j) {
    AB_CHECK(index[j] >= first && index[j] < last, InvalidArgument, "MaxIndex must be a row from {} to {}, got {}",
             first, last - 1, index[j]);
    dx[index[j] * width + j] = dout[j];
  }
}

}  // namespace anabranch::sequence
