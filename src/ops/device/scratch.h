// Device memory that a kernel keeps between its launches, so that a steady step allocates nothing.
#pragma once
#include "core/tensor.h"
#include "opdef/device_context.h"

namespace anabranch::device {

class Scratch {
 public:
  Tensor& of(const DeviceContext& c, const Shape& shape, DType dtype) {
    held_.resize(shape, {dtype, Place::cuda(c.device())});
    return held_;
  }

 private:
  Tensor held_;
};

}  // namespace anabranch::device
