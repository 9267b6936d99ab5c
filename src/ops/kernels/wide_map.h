// The loops of flat_loop.h in wider vectors: for functions of a few operations, where 16-byte vectors are slower than
// memory.
#pragma once
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/wide.h"

namespace anabranch {

// out[i] = fn(x[i])
template <class T, class U, class Fn>
void wide_map(const KernelContext& c, int64_t grain, int64_t n, const T* x, U* out, Fn fn) {
  c.parallel_for(n, grain, [=](int64_t begin, int64_t end) {
    in_wide_vectors([=] {
      const Fn own = fn;  // a local copy, which neither `to` nor its pointers can alias: members are read once
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
