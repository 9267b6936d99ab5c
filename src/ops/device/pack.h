// Packs of 16 bytes of adjacent elements, which one GPU instruction loads or stores.
#pragma once
#include <cstdint>
#include <type_traits>

#include "ops/device/kernels.h"

namespace anabranch::device {

template <class T, int kCount> struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Pack { T at[kCount]; };

// Whether the address is aligned for a pack.
template <class P> AB_HD bool packed(const void* p) { return reinterpret_cast<uintptr_t>(p) % alignof(P) == 0; }

// y[i] = fn(x[0][i], x[1][i], ...) for elements of one type; 16-bit elements are processed 16 bytes at a time, because
// threads that move two bytes each use only half of a GPU's bandwidth. y may alias one of x.
template <class T, int kIns, int kCount, class Fn> struct DensePacks {
  using P = Pack<T, kCount>;
  Fn fn;
  const T* x[kIns];
  T* y;
  AB_HD void operator()(int64_t i) const {
    P in[kIns], out;
    for (int k = 0; k < kIns; ++k) in[k] = reinterpret_cast<const P*>(x[k])[i];
    for (int e = 0; e < kCount; ++e) {
      if constexpr (kIns == 1)
        store(&out.at[e], fn(load(in[0].at[e])));
      else
        store(&out.at[e], fn(load(in[0].at[e]), load(in[1].at[e])));
    }
    reinterpret_cast<P*>(y)[i] = out;
  }
};
template <class T, int kIns, class Fn>
int each_dense(const Launch& launch, int64_t n, const T* const (&x)[kIns], T* y, const Fn& fn) {
  const auto run = [&](auto count) {
    DensePacks<T, kIns, decltype(count)::value, Fn> body{fn, {}, y};
    for (int k = 0; k < kIns; ++k) body.x[k] = x[k];
    return each(launch, n / decltype(count)::value, body);
  };
  if constexpr (sizeof(T) == 2) {
    constexpr int kCount = 8;
    bool wide = n % kCount == 0 && n >= kManyElements && packed<Pack<T, kCount>>(y);
    for (const T* p : x) wide = wide && packed<Pack<T, kCount>>(p);
    if (wide) return run(std::integral_constant<int, kCount>{});
  }
  return run(std::integral_constant<int, 1>{});
}

// Copies n elements.
template <class T> struct CopyDense {
  const T* from;
  T* to;
  AB_HD void operator()(int64_t i) const { to[i] = from[i]; }
};
template <class T> int copy_dense(const Launch& launch, const T* from, T* to, int64_t n) {
  using Packed = Pack<uint64_t, 2>;
  constexpr int64_t kCount = sizeof(Packed) / sizeof(T);
  if (n % kCount != 0 || !packed<Packed>(from) || !packed<Packed>(to)) return each(launch, n, CopyDense<T>{from, to});
  return each(launch, n / kCount,
              CopyDense<Packed>{reinterpret_cast<const Packed*>(from), reinterpret_cast<Packed*>(to)});
}

}  // namespace anabranch::device
