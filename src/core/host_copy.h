// What the CPU reads of a tensor, wherever that lies.
#pragma once
#include "core/tensor.h"

namespace anabranch {

// The tensor itself, or a copy of one that lies on a device: waits for what the device has under way.
inline Tensor on_host(const Tensor& tensor) {
  if (tensor.place().on_host()) return tensor;
  Tensor copy;
  copy.copy_from(tensor);
  return copy;
}

// From now on the tensor lies where the CPU reads and writes it. A program that has it on a device moves it there again
// before its next step.
inline void bring_to_host(Tensor& tensor) {
  if (!tensor.place().on_host()) tensor = on_host(tensor);
}

}  // namespace anabranch
