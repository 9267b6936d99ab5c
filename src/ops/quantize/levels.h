// Shared by the ops of simulated quantization: the number of levels, the maximum of a tensor, rounding to levels.
#pragma once
#include <algorithm>
#include <cmath>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/kernels/reduce.h"
#include "ops/kernels/round_half.h"
#include "ops/kernels/wide_map.h"

namespace anabranch::quantize {

inline constexpr const char* kNoGrad = "rounding has no useful derivative";

inline void bit_length(OpDef& def) {
  def.attr<int32_t>("bit_length", 8, "number of bits of a level, including its sign, from 1 to 16",
                    within("bit_length", 1, 16));
}

// The largest level for this number of bits.
inline int64_t levels_of(int32_t bits) { return (int64_t{1} << (bits - 1)) - 1; }

// Ignores NaN.
template <class T> T max_abs(const T* x, int64_t n) {
  constexpr int64_t kParts = 16;
  T part[kParts] = {};
  in_wide_vectors([=, &part] {
    int64_t i = 0;
    for (; i + kParts <= n; i += kParts) {
      for (int64_t k = 0; k < kParts; ++k) {
        const T size = std::abs(x[i + k]);
        part[k] = part[k] < size ? size : part[k];
      }
    }
    for (; i < n; ++i) part[0] = std::max(part[0], std::abs(x[i]));
  });
  return *std::max_element(part, part + kParts);
}

template <class T> T max_abs(const KernelContext& c, const Tensor& x) {
  const T* from = x.data<T>();
  const int64_t n = x.numel();
  T most = 0;
  // Each chunk has a maximum; the overall maximum does not depend on the split.
  constexpr int64_t kChunks = 64;
  T chunk[kChunks] = {};
  const int64_t step = (n + kChunks - 1) / kChunks;
  c.parallel_each(kChunks, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, step)), [&](int64_t p) {
    const int64_t at = std::min(n, p * step);
    chunk[p] = max_abs(from + at, std::min(n, at + step) - at);
  });
  for (const T& p : chunk) most = std::max(most, p);
  return most;
}

// x clamped to [-scale, scale] and rounded to the nearest level; a scale of 0 gives 0. `back`: converted back to a
// number. The order of the products and the rounding of halves are those of Fluid 1.8.5, so that no number close to a
// half gets another level: halves become even, except in the last numbers, which fill no vector of 32 bytes.
template <class T> struct Rounding {
  T scale, levels;
  bool back = false;

  static int64_t in_vectors(int64_t n) {
    constexpr int64_t kVector = 32 / sizeof(T);
    return n - n % kVector;
  }

  // Numbers [begin, end) of a tensor, of which the first `even` have halves that become even.
  void operator()(const T* x, T* out, int64_t begin, int64_t end, int64_t even) const {
    in_wide_vectors([=, own = *this] {
      const T most = own.scale, by = own.levels * (T{1} / own.scale), step = own.scale / own.levels;
      if (!(most > 0)) {
        for (int64_t i = begin; i < end; ++i) out[i] = T{0} * x[i];
        return;
      }
      for (int64_t i = begin; i < end; ++i) {
        const T above = x[i] < -most ? -most : x[i], within = above > most ? most : above;
        out[i] = within * by;
      }
      const int64_t from = std::clamp(even, begin, end);
      for (int64_t i = begin; i < from; ++i) out[i] = std::nearbyint(out[i]);
      for (int64_t i = from; i < end; ++i) out[i] = round_half_away(out[i]);
      if (!own.back) return;
      for (int64_t i = begin; i < end; ++i) out[i] = out[i] * step;
    });
  }
  void operator()(const T* x, T* out, int64_t n) const { (*this)(x, out, 0, n, in_vectors(n)); }
  void operator()(const KernelContext& c, const T* x, T* out, int64_t n) const {
    c.parallel_for(n, kCheapGrain, [x, out, even = in_vectors(n), own = *this](int64_t begin, int64_t end) {
      constexpr int64_t kTile = 2048;  // fits the cache from one loop to the next
      for (int64_t i = begin; i < end; i += kTile) own(x, out, i, std::min(kTile + i, end), even);
    });
  }
};

template <class T> T number_of(const KernelContext& c, In in) {
  AB_CHECK(c[in].numel() == 1, ShapeMismatch, "a scale must have one element, got shape {}", c[in].shape().str());
  return *c[in].data<T>();
}

}  // namespace anabranch::quantize
