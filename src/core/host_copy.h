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

}  // namespace anabranch
