// The attribute out_dtype of reductions: X is folded in that dtype, and the gradient is computed in the dtype of X.
#pragma once
#include <memory>

#include "ops/declare/declare.h"
#include "ops/device/scratch.h"

namespace anabranch::reduce {

// The dtype of Out for an X of this dtype. -1 and reductions of bool: that of X. Unsupported unless it is int32, int64,
// float32, float64 or the dtype of X.
DType result_dtype(const ir::Op& op, DType x);

// A tensor in another dtype; the memory of the copy is kept between steps.
class AsDType {
 public:
  const Tensor& operator()(const KernelContext& c, const Tensor& x, DType dtype);

 private:
  std::shared_ptr<Tensor> copy_ = std::make_shared<Tensor>();
};

// The same on a device.
class AsDTypeThere {
 public:
  const Tensor& operator()(const DeviceContext& c, const Tensor& x, DType dtype);

 private:
  std::shared_ptr<device::Scratch> copy_ = std::make_shared<device::Scratch>();
};

}  // namespace anabranch::reduce
