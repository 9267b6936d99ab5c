// Normalisation of channels by the library of a device.
#pragma once
#include "ops/device/args_library.h"
#include "ops/device/operands.h"
#include "ops/nn/channels.h"

namespace anabranch::device {

template <class T> class BatchNormCall {
 public:
  BatchNormCall(const char* key, const KernelArgs& op, bool fixed) : call_(key), last_(nn::channels_last(op.op())) {
    desc_.epsilon = static_cast<double>(op.attr<float>("epsilon"));
    desc_.momentum = static_cast<double>(op.attr<float>("momentum"));
    desc_.fixed = fixed;
    desc_.dtype = static_cast<int32_t>(dtype_of<T>);
  }
  void run(const DeviceContext& c, const Shape& x, std::initializer_list<ab_operand> operands) {
    const nn::Channels d(x, last_);
    desc_.outer = d.outer;
    desc_.channels = d.channels;
    desc_.inner = d.inner;
    call_.run(c, desc_, operands);
  }

 private:
  LibraryCall call_;
  bool last_;
  BatchNormDesc desc_{};
};

}  // namespace anabranch::device
