// Kernels that move elements without arithmetic, for the CPU and devices: one template with OnHost or OnDevice makes
// both. Also factories for other kernels that several ops of ops/tensor share.
#pragma once
#include <initializer_list>
#include <string>

#include "ops/device/args_fold.h"
#include "ops/device/args_tensor.h"
#include "ops/device/launch_index.h"
#include "ops/device/walk.h"
#include "ops/device/zeros.h"
#include "ops/kernels/strided_copy.h"

namespace anabranch::device {

// Kernels that move elements depend only on their size: "copy/i32" also copies float32.
inline ab_kernel kernel_of_size(const std::string& stem, size_t bytes) {
  return device_kernel(stem_of_size(stem, bytes));
}

// Keeps an op with one of these inputs on the CPU: its kernel reads their values.
inline void refuse_inputs(const KernelArgs& op, std::initializer_list<const char*> slots) {
  for (const char* slot : slots)
    AB_CHECK(!op.in(slot), Unsupported, "{} is not supported on devices: the host reads its values", slot);
}

class OnHost {
 public:
  explicit OnHost(DType) {}
  static void reads(const KernelArgs&, std::initializer_list<const char*>) {}
  // loop: operand 0 is the target, 1 the source; offsets are those of the first element of the loop.
  void strided(const KernelContext& c, const NdLoop<2>& loop, const Tensor& from, int64_t from_at, Tensor* to,
               int64_t to_at) const {
    strided_copy(c, loop, from, from_at, to, to_at);
  }
  void whole(const KernelContext& c, const Tensor& from, Tensor* to) const { copy_bytes(c, from, to); }
  void zero(const KernelContext& c, Tensor* to) const { zero_bytes(c, to); }
  template <class T> void fill(const KernelContext& c, Tensor* out, T value) const {
    T* to = out->mutable_data<T>();
    c.parallel_for(out->numel(), kCheapGrain,
                   [=](int64_t begin, int64_t end) { std::fill(to + begin, to + end, value); });
  }
};

// "fill/...": every element of y is the value.
template <class T> FillArgs filled(Tensor& y, T value) {
  FillArgs a{{}, operand(y), y.numel(), 0};
  std::memcpy(&a.bits, &value, sizeof(value));
  return a;
}

inline void copy_whole(const KernelContext& c, const Tensor& from, Tensor* to) {
  AB_CHECK(from.bytes() == to->bytes(), Internal, "{} is copied to {}", from.shape().str(), to->shape().str());
  if (from.raw() != to->raw() && to->bytes() > 0) DeviceContext::of(c).copy(*to, from);
}

class OnDevice {
 public:
  explicit OnDevice(DType dtype)
      : copy_(kernel_of_size("copy", dtype_size(dtype))), fill_(kernel_of_size("fill", dtype_size(dtype))) {}
  // Inputs that kernels read on the host.
  static void reads(const KernelArgs& op, std::initializer_list<const char*> slots) { refuse_inputs(op, slots); }
  void strided(const KernelContext& c, const NdLoop<2>& loop, const Tensor& from, int64_t from_at, Tensor* to,
               int64_t to_at) const {
    AB_CHECK(from.dtype() == to->dtype(), Internal, "elements of {} are copied to {}", dtype_name(from.dtype()),
             dtype_name(to->dtype()));
    const CopyArgs a{operand(from), operand(*to), to_at, from_at, axes_of(loop), 0};
    DeviceContext::of(c).launch(copy_, a);
  }
  void whole(const KernelContext& c, const Tensor& from, Tensor* to) const { copy_whole(c, from, to); }
  void zero(const KernelContext& c, Tensor* to) const { fill_zero(DeviceContext::of(c), *to); }
  template <class T> void fill(const KernelContext& c, Tensor* to, T value) const {
    DeviceContext::of(c).launch(fill_, filled(*to, value));
  }

 private:
  ab_kernel copy_, fill_;
};

// One of several operands.
template <int kOperands> Axes<1> axes_of_one(const Axes<kOperands>& axes, int operand) {
  Axes<1> own{};
  own.rank = axes.rank;
  for (int axis = 0; axis < axes.rank; ++axis) {
    own.extent[axis] = axes.extent[axis];
    own.stride[0][axis] = axes.stride[operand][axis];
  }
  return own;
}

// By a kernel "fold_axes/sum": operand 0 of the loop is the result, with stride 0 along the axes that are summed;
// operand 1 starts at element `first`.
inline void sum_along(const KernelContext& c, ab_kernel kernel, const NdLoop<2>& loop, const Tensor& from,
                      int64_t first, Tensor* to) {
  if (loop.total() == 0) return fill_zero(DeviceContext::of(c), *to);
  const size_t skipped = static_cast<size_t>(first) * dtype_size(from.dtype());
  const auto axes = axes_of(loop);
  const FoldAxesArgs a{{static_cast<const char*>(from.raw()) + skipped, from.bytes() - skipped},
                       operand(*to),
                       axes_of_one(axes_where(axes, 0, false), 1),
                       axes_of_one(axes_where(axes, 0, true), 1)};
  DeviceContext::of(c).launch(kernel, a);
}

}  // namespace anabranch::device
