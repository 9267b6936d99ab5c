// Elementwise loops over two operands, of which one may have stride 0: the runs of a broadcasting loop.
#pragma once
#include <cstdint>
#include <type_traits>

#include "ops/kernels/wide.h"

namespace anabranch {

// Calls fn(x step, y step) with the steps of a run as constants, so that compilers can vectorize its loop. A step is 1
// or 0; both are 0 only for a single element.
template <class Fn> void with_steps(int64_t x_step, int64_t y_step, Fn&& fn) {
  using Step = std::integral_constant<int64_t, 1>;
  using Stay = std::integral_constant<int64_t, 0>;
  if (x_step && y_step) return fn(Step(), Step());
  x_step ? fn(Step(), Stay()) : fn(Stay(), Step());
}

// A loop over n elements; for short loops the dispatch on vector width costs more than it saves.
template <class Walk> void in_wide_run(int64_t n, const Walk& walk) {
  constexpr int64_t kWideRun = 64;
  n >= kWideRun&& has_avx2() ? run_avx2(walk) : walk();
}

// out[i] = fn(x[i], y[i]) for n elements.
template <class T, class U, class Fn>
void binary_run(const T* x, int64_t x_step, const T* y, int64_t y_step, U* out, int64_t n, Fn fn) {
  with_steps(x_step, y_step, [=](auto sx, auto sy) {
    in_wide_run(n, [=] {
      const Fn own = fn;
      for (int64_t i = 0; i < n; ++i) out[i] = own(x[i * sx], y[i * sy]);
    });
  });
}

// Only float32 has loops for wider vectors: the other types are rare, and memory is what most of them wait for.
template <class T, class Walk> void in_vectors_of(int64_t n, const Walk& walk) {
  if constexpr (std::is_same_v<T, float>) {
    in_wide_run(n, walk);
  } else {
    walk();
  }
}

// A run of a broadcasting loop by pointer, so that the walk over the axes is compiled once for all functions.
using PairRun = void (*)(const void* x, int64_t x_step, const void* y, int64_t y_step, void* out, int64_t n);

template <class T, class U, class Fn>
void pair_run(const void* xs, int64_t x_step, const void* ys, int64_t y_step, void* to, int64_t n) {
  const T *x = static_cast<const T*>(xs), *y = static_cast<const T*>(ys);
  U* out = static_cast<U*>(to);
  with_steps(x_step, y_step, [=](auto sx, auto sy) {
    in_vectors_of<T>(n, [=] {
      for (int64_t i = 0; i < n; ++i) out[i] = Fn{}(x[i * sx], y[i * sy]);
    });
  });
}

}  // namespace anabranch
