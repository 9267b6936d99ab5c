// Loops over the elements of tensors of one shape, split over the idle workers of a context.
#pragma once
#include <cstdint>
#include <type_traits>

#include "opdef/tile.h"

namespace anabranch {

// Smallest number of elements that is worth a task for another worker: about ten microseconds.
inline constexpr int64_t kCheapGrain = 32768;  // a load, an addition, a store
inline constexpr int64_t kMathGrain = 4096;    // exp, log, tanh ...

// out[i] = fn(x[i])
template <class T, class U, class Fn>
void map(const KernelContext& c, int64_t grain, int64_t n, const T* x, U* out, Fn fn) {
  c.parallel_for(n, grain, [=](int64_t begin, int64_t end) {
    const Fn own = fn;  // a local copy, which `out` cannot alias: its members are read once
    for (int64_t i = begin; i < end; ++i) out[i] = own(x[i]);
  });
}

// out[i] = fn(a[i], b[i])
template <class T, class U, class V, class Fn>
void map(const KernelContext& c, int64_t grain, int64_t n, const T* a, const U* b, V* out, Fn fn) {
  c.parallel_for(n, grain, [=](int64_t begin, int64_t end) {
    const Fn own = fn;
    for (int64_t i = begin; i < end; ++i) out[i] = own(a[i], b[i]);
  });
}

inline void run_loop(const KernelContext& c, int64_t grain, int64_t n, const float* x, float* out, UnaryLoop loop) {
  c.parallel_for(n, grain, [=](int64_t begin, int64_t end) { loop(x + begin, out + begin, end - begin); });
}
inline void run_loop(const KernelContext& c, int64_t grain, int64_t n, const float* a, const float* b, float* out,
                     BinaryLoop loop) {
  c.parallel_for(n, grain, [=](int64_t begin, int64_t end) { loop(a + begin, b + begin, out + begin, end - begin); });
}

}  // namespace anabranch
