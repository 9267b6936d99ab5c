// Tensors for the CPU to read, wherever they are stored.
#pragma once
#include "core/tensor.h"

namespace anabranch {

// The tensor itself, or a copy of one that is on a device; waits for the device's pending work.
inline Tensor on_host(const Tensor& tensor) {
  if (tensor.place().on_host()) return tensor;
  Tensor copy;
  copy.copy_from(tensor);
  return copy;
}

// The tensor, or a copy in `copy` if it is on a device or a strided view: elements in order.
inline const Tensor& readable(const Tensor& tensor, Tensor* copy) {
  if (tensor.place().on_host() && tensor.contiguous()) return tensor;
  copy->copy_from(tensor);
  return *copy;
}

// Moves the tensor to host memory. A program that uses it on a device moves it back before its next step.
inline void bring_to_host(Tensor& tensor) {
  if (!tensor.place().on_host()) tensor = on_host(tensor);
}

}  // namespace anabranch
