// A typed range of device memory: an address, on which the host only computes offsets, and a count. Operands of kernels
// and products are made of it where they are slices of a tensor.
#pragma once
#include <type_traits>

#include "opdef/library_call.h"
#include "ops/device/launch.h"

namespace anabranch::device {

template <class T> struct Slab {
  T* at = nullptr;
  int64_t count = 0;

  explicit operator bool() const { return at != nullptr; }
  operator Slab<const T>() const  // NOLINT(google-explicit-constructor): like pointers
      requires(!std::is_const_v<T>) {
    return {at, count};
  }
  // From this element on: the rest, or `count` elements.
  Slab from(int64_t first) const { return part(first, count - first); }
  Slab part(int64_t first, int64_t n) const { return at ? Slab{at + first, n} : Slab{}; }
  Slab rows(int64_t first, int64_t n, int64_t width) const { return part(first * width, n * width); }

  size_t bytes() const { return static_cast<size_t>(count) * sizeof(T); }
  DeviceIn in() const { return {at, bytes()}; }
  DeviceOut out() const requires(!std::is_const_v<T>) { return {at, bytes()}; }
  ab_operand operand(ab_access access) const { return {const_cast<std::remove_const_t<T>*>(at), bytes(), access, 0}; }
};

template <class T> Slab<const T> slab(const Tensor& t) { return {static_cast<const T*>(t.raw()), t.numel()}; }
template <class T> Slab<T> slab(Tensor& t) { return {static_cast<T*>(t.mutable_raw()), t.numel()}; }
// A missing operand has no address.
template <class T> Slab<const T> slab(const KernelContext& c, In in) {
  return in ? slab<T>(std::as_const(c[in])) : Slab<const T>{};
}
template <class T> Slab<T> slab(const KernelContext& c, Out out) { return c.needs(out) ? slab<T>(c[out]) : Slab<T>{}; }

}  // namespace anabranch::device
