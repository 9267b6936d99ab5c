// Adds one tensor to another: for gradients of a variable that arrive one after another.
#pragma once
#include "opdef/kernel_context.h"
#include "ops/kernels/flat_loop.h"

namespace anabranch {

// to += from, for float tensors of one shape.
inline void add_tensor(const KernelContext& c, const Tensor& from, Tensor& to) {
  AB_CHECK(from.shape() == to.shape() && from.dtype() == to.dtype(), ShapeMismatch,
           "gradients of one variable must have the same dtype and shape, got {} {} and {} {}", dtype_name(to.dtype()),
           to.shape().str(), dtype_name(from.dtype()), from.shape().str());
  const auto add = [&]<class T>(TypeTag<T>) {
    const T* x = from.data<T>();
    T* y = to.mutable_data<T>();
    c.parallel_each(to.numel(), kCheapGrain, [=](int64_t i) { y[i] += x[i]; });
  };
  if (to.dtype() == DType::kFloat64) return add(TypeTag<double>{});
  add(TypeTag<float>{});
}

// The same for an element of an array, which may share memory with others.
inline void add_to_element(const KernelContext& c, const Tensor& from, Tensor& to) {
  if (to.is_shared()) {
    Tensor own;
    own.copy_from(to);
    to = std::move(own);
  }
  add_tensor(c, from, to);
}

}  // namespace anabranch
