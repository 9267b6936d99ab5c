// Batch normalization on a device: by its library, except with the channels last and batch statistics, where the
// kernels here are many times faster.
#pragma once
#include "ops/device/batch_norm_operands.h"
#include "ops/device/launch.h"
#include "ops/device/operands.h"
#include "ops/nn/channels.h"

namespace anabranch::device {

// Args: the arguments of the kernel `last_kernel` of ops/nn/batch_norm_last.cu or batch_norm_last_grad.cu.
template <class T, class Args> class BatchNormCall {
 public:
  BatchNormCall(const char* key, const char* last_kernel, const KernelArgs& op, bool fixed)
      : call_(key), kernel_(kernel_of<T>(last_kernel)), last_(nn::channels_last(op.op())) {
    desc_.epsilon = static_cast<double>(op.attr<float>("epsilon"));
    desc_.momentum = static_cast<double>(op.attr<float>("momentum"));
    desc_.fixed = fixed;
    desc_.dtype = static_cast<int32_t>(dtype_of<T>);
  }
  // Whether the kernel runs for this shape instead of the library.
  bool by_kernel(const Shape& x) const {
    const nn::Channels d(x, last_);
    return !desc_.fixed && d.inner == 1 && d.outer > 1 && d.channels > 0;
  }
  // add(args): sets arguments of the kernel that the library does not have.
  template <class Add>
  void run(const DeviceContext& c, const Shape& x, std::initializer_list<ab_operand> operands, Add&& add) {
    const nn::Channels d(x, last_);
    desc_.outer = d.outer;
    desc_.channels = d.channels;
    desc_.inner = d.inner;
    if (!by_kernel(x)) return call_.run(c, desc_, operands);
    Args a{};
    take(a, operands.begin());
    add(a);
    a.outer = d.outer;
    a.channels = d.channels;
    a.inner = 1;
    a.epsilon = desc_.epsilon;
    if constexpr (requires { a.momentum; }) a.momentum = desc_.momentum;
    c.launch(kernel_, a);
  }
  void run(const DeviceContext& c, const Shape& x, std::initializer_list<ab_operand> operands) {
    run(c, x, operands, [](Args&) {});
  }

 private:
  LibraryCall call_;
  ab_kernel kernel_;
  bool last_;
  BatchNormDesc desc_{};
};

}  // namespace anabranch::device
