// The loops of flat_loop.h in the wider vectors of a machine that has them: for functions of a few operations, where
// vectors of 16 bytes are slower than the memory.
#pragma once
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/wide.h"

namespace anabranch {

// out[i] = fn(x[i])
template <class T, class U, class Fn>
void wide_map(const KernelContext& c, int64_t grain, int64_t n, const T* x, U* out, Fn fn) {
  c.parallel_for(n, grain, [=](int64_t begin, int64_t end) {
    in_wide_vectors([=] {
      const Fn own = fn;  // which `to` cannot overlap, nor the pointers: what they hold is read once, bytes or not
      const T* from = x;
      U* to = out;
      for (int64_t i = begin; i < end; ++i) to[i] = own(from[i]);
    });
  });
}

// out[i] = fn(a[i], b[i])
template <class T, class U, class V, class Fn>
void wide_map(const KernelContext& c, int64_t grain, int64_t n, const T* a, const U* b, V* out, Fn fn) {
  c.parallel_for(n, grain, [=](int64_t begin, int64_t end) {
    in_wide_vectors([=] {
      const Fn own = fn;
      for (int64_t i = begin; i < end; ++i) out[i] = own(a[i], b[i]);
    });
  });
}

}  // namespace anabranch
