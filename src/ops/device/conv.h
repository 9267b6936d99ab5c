// Convolutions by a device's library, with the dimensions of the CPU kernels (ops/nn/conv.h).
#pragma once
#include "opdef/library_call.h"
#include "ops/device/windows.h"
#include "ops/nn/conv.h"

namespace anabranch::device {

template <class T> class Conv {
 public:
  explicit Conv(nn::ConvPass pass, Operand operand = Operand::kFull) : pass_(pass), operand_(operand) {}
  void run(const DeviceContext& c, const nn::ConvDims& d, const Tensor& a, const Tensor& b, Tensor& out) {
    ConvDesc desc{};
    desc.window = describe(d.window, d.channels_last);
    desc.batch = d.batch;
    desc.in_channels = d.in_channels;
    desc.out_channels = d.out_channels;
    desc.groups = d.groups;
    desc.pass = static_cast<int32_t>(pass_);
    desc.rounded = operand_ == Operand::kBfloat16 && sizeof(T) > 2;  // 16-bit floats are already rounded
    desc.dtype = static_cast<int32_t>(dtype_of<T>);
    call_.run(c, desc, {read_by(a), read_by(b), written_by(out)});
  }

 private:
  nn::ConvPass pass_;
  Operand operand_;
  LibraryCall call_{"conv"};
};

}  // namespace anabranch::device
