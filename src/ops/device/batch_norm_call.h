// Normalisation of channels on a device: by its library, but by kernels of ours where channels lie last and statistics
// are those of the batch, for which libraries take many times as long.
#pragma once
#include "ops/device/args_library.h"
#include "ops/device/launch.h"
#include "ops/device/operands.h"
#include "ops/nn/channels.h"

namespace anabranch::device {

inline DeviceIn read(const ab_operand& o) { return {o.address, o.bytes}; }
inline DeviceOut write(const ab_operand& o) { return {o.address, o.bytes}; }

// The operands of the library calls, for the kernels of ops/nn/batch_norm_last.cu.
inline void take(BatchNormArgs& a, const ab_operand* o) {
  a.x = read(o[0]);
  a.scale = read(o[1]);
  a.bias = read(o[2]);
  a.mean = read(o[3]);
  a.variance = read(o[4]);
  a.y = write(o[5]);
  a.mean_out = write(o[6]);
  a.variance_out = write(o[7]);
  a.used = write(o[8]);
  a.inverse = write(o[9]);
}
inline void take(BatchNormGradArgs& a, const ab_operand* o) {
  a.x = read(o[0]);
  a.scale = read(o[1]);
  a.dy = read(o[2]);
  a.used = read(o[3]);
  a.inverse = read(o[4]);
  a.dx = write(o[7]);
  a.dscale = write(o[8]);
  a.dbias = write(o[9]);
}

// Args: those of the kernel.
template <class T, class Args> class BatchNormCall {
 public:
  BatchNormCall(const char* key, const char* last_kernel, const KernelArgs& op, bool fixed)
      : call_(key), kernel_(kernel_of<T>(last_kernel)), last_(nn::channels_last(op.op())) {
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
    const bool last = d.inner == 1 && d.outer > 1 && d.channels > 0;
    if (desc_.fixed || !last) return call_.run(c, desc_, operands);
    Args a{};
    take(a, operands.begin());
    a.outer = d.outer;
    a.channels = d.channels;
    a.inner = 1;
    a.epsilon = desc_.epsilon;
    if constexpr (requires { a.momentum; }) a.momentum = desc_.momentum;
    c.launch(kernel_, a);
  }

 private:
  LibraryCall call_;
  ab_kernel kernel_;
  bool last_;
  BatchNormDesc desc_{};
};

}  // namespace anabranch::device
