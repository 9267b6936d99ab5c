// Matrix products in plain loops, for Gemm: float64, and products too small for a library call. k ascends in each sum,
// so an element is the same sum in every loop variant, except for long float32 dot products (small_product.h).
#pragma once
#include <algorithm>
#include <type_traits>
#include <utility>

#include "ops/kernels/gemm.h"
#include "ops/kernels/small_product.h"

namespace anabranch {

template <class In, class T> struct Operands {
  const In *a, *b;
  T* out;
};

// A vector times a matrix whose rows are columns of B: dot products, four at a time, so that none waits for its own
// previous sum.
template <class T> void row_of_dots(const GemmDims& d, T alpha, const T* a, int64_t a_col, const T* b, T* out) {
  constexpr int64_t kAtOnce = 4;
  int64_t j = 0;
  for (; j + kAtOnce <= d.n; j += kAtOnce) {
    const T *b0 = b + j * d.ld_b, *b1 = b0 + d.ld_b, *b2 = b1 + d.ld_b, *b3 = b2 + d.ld_b;
    T sums[kAtOnce] = {};
    for (int64_t l = 0; l < d.k; ++l) {
      const T weight = a[l * a_col];
      sums[0] += weight * b0[l];
      sums[1] += weight * b1[l];
      sums[2] += weight * b2[l];
      sums[3] += weight * b3[l];
    }
    for (int64_t i = 0; i < kAtOnce; ++i) out[j + i] = alpha * sums[i];
  }
  for (; j < d.n; ++j) {
    T sum = 0;
    for (int64_t l = 0; l < d.k; ++l) sum += a[l * a_col] * b[j * d.ld_b + l];
    out[j] = alpha * sum;
  }
}

// In multiply-adds: up to here a library call costs more than the product.
inline constexpr int64_t kSmallWork = 4096;
// Shorter loops are not worth the choice of an instruction set.
inline constexpr int64_t kWorthVectors = 16;

// Row i of C is the sum of rows of B weighted by row i of A; if B is transposed, dot products.
template <class T> void plain_product(const GemmDims& d, T alpha, const Operands<T, T>& p) {
  const int64_t a_row = d.trans_a ? 1 : d.ld_a, a_col = d.trans_a ? d.ld_a : 1;
  for (int64_t i = 0; i < d.m; ++i) {
    const T* a = p.a + i * a_row;
    T* out = p.out + i * d.ld_c;
    if constexpr (std::is_same_v<T, float>) {
      if (d.trans_b && a_col == 1 && d.k >= kWorthVectors) {
        simd::dots(alpha, a, p.b, d.ld_b, d.k, d.n, out);
        continue;
      }
      if (!d.trans_b && d.n >= kWorthVectors) {
        simd::weighted_rows(alpha, a, a_col, p.b, d.ld_b, d.k, d.n, out);
        continue;
      }
    }
    if (d.trans_b) {
      row_of_dots(d, alpha, a, a_col, p.b, out);
      continue;
    }
    std::fill(out, out + d.n, T{0});
    for (int64_t l = 0; l < d.k; ++l) {
      const T weight = a[l * a_col];
      const T* b = p.b + l * d.ld_b;
      for (int64_t j = 0; j < d.n; ++j) out[j] += weight * b[j];
    }
    if (alpha != T{1}) {
      for (int64_t j = 0; j < d.n; ++j) out[j] *= alpha;
    }
  }
}

// The same product with long inner loops, for plain_product: treats a column of C as a row of its transpose, and a
// one-row B stored as a column as a row. Each element stays the same sum.
template <class T> void lengthen_loops(GemmDims* d, Operands<T, T>* p) {
  if (d->n == 1 && d->m > 1 && d->ld_c == 1) {
    std::swap(p->a, p->b);
    std::swap(d->m, d->n);
    std::swap(d->ld_a, d->ld_b);
    std::swap(d->batch_stride_a, d->batch_stride_b);
    std::swap(d->trans_a, d->trans_b);
    d->trans_a = !d->trans_a;
    d->trans_b = !d->trans_b;
    d->ld_c = d->n;
  }
  if (d->k == 1 && d->trans_b && d->ld_b == 1) {
    d->trans_b = false;
    d->ld_b = d->n;
  }
}

}  // namespace anabranch
