// Neighbours in memory that a thread reads and writes at once: 16 bytes are as much as one instruction of a GPU moves.
#pragma once
#include <cstdint>

#include "ops/device/kernels.h"

namespace anabranch::device {

template <class T, int kCount> struct alignas(sizeof(T) * kCount) Pack { T at[kCount]; };

// Whether a pack may begin there.
template <class P> bool packed(const void* p) { return reinterpret_cast<uintptr_t>(p) % alignof(P) == 0; }

// n elements to another place.
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
