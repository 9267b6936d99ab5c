// Optional outputs, such as gradients that are not requested.
#pragma once
#include <algorithm>

#include "opdef/kernel_context.h"

namespace anabranch {

// The elements of an output, null if it is not requested.
template <class T> T* needed(const KernelContext& c, Out out) {
  return c.needs(out) ? c[out].mutable_data<T>() : nullptr;
}

// The same, zeroed.
template <class T> T* zeroed(const KernelContext& c, Out out) {
  T* to = needed<T>(c, out);
  if (to) std::fill(to, to + c[out].numel(), T{0});
  return to;
}

}  // namespace anabranch
