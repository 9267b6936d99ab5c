// Vectorized softplus, sigmoid or log for losses: tiles of arguments at once.
#pragma once
#include <algorithm>
#include <cstdint>

#include "ops/kernels/simd.h"
#include "ops/kernels/simd_functions.h"
#include "ops/loss/logistic.h"

namespace anabranch::loss {

inline constexpr int64_t kTile = 256;

// Calls fn(first, count, t) for tiles of [begin, end), where t holds `loop` of the numbers argument(i).
template <class Argument, class Fn>
void each_tile(int64_t begin, int64_t end, void (*loop)(const float*, float*, int64_t), Argument&& argument, Fn&& fn) {
  float t[kTile];
  for (int64_t first = begin; first < end; first += kTile) {
    const int64_t count = std::min(kTile, end - first);
    for (int64_t i = 0; i < count; ++i) t[i] = argument(first + i);
    loop(t, t, count);
    fn(first, count, static_cast<const float*>(t));
  }
}

// out[i] = fn(i, softplus(argument(i))), or with the logistic function.
template <class Argument, class Fn>
void with_softplus(int64_t begin, int64_t end, float* out, Argument&& argument, Fn&& fn) {
  each_tile(begin, end, simd::softplus, argument, [&](int64_t first, int64_t count, const float* t) {
    for (int64_t i = 0; i < count; ++i) out[first + i] = fn(first + i, t[i]);
  });
}
template <class Argument, class Fn>
void with_softplus(int64_t begin, int64_t end, double* out, Argument&& argument, Fn&& fn) {
  for (int64_t i = begin; i < end; ++i) out[i] = fn(i, softplus(argument(i)));
}
template <class Argument, class Fn>
void with_logistic(int64_t begin, int64_t end, float* out, Argument&& argument, Fn&& fn) {
  each_tile(begin, end, simd::sigmoid, argument, [&](int64_t first, int64_t count, const float* t) {
    for (int64_t i = 0; i < count; ++i) out[first + i] = fn(first + i, t[i]);
  });
}
template <class Argument, class Fn>
void with_logistic(int64_t begin, int64_t end, double* out, Argument&& argument, Fn&& fn) {
  for (int64_t i = begin; i < end; ++i) out[i] = fn(i, logistic(argument(i)));
}

}  // namespace anabranch::loss
