// Pooling on devices, with the dimensions of the CPU kernels.
#pragma once
#include "ops/device/launch.h"
#include "ops/device/windows.h"
#include "ops/nn/pool_dims.h"

namespace anabranch::device {

template <class T> class PoolCall {
 public:
  PoolCall(const char* stem, bool is_max) : kernel_(kernel_of<T>(std::string(stem) + (is_max ? "/max" : "/avg"))) {}
  // a: with its operands set.
  void run(const DeviceContext& c, const nn::PoolDims& d, PoolArgs a) const {
    a.window = describe(d.window, d.channels_last);
    a.batch = d.batch;
    a.channels = d.channels;
    a.adaptive = d.adaptive;
    a.count_padding = !d.exclusive;
    c.launch(kernel_, a);
  }

 private:
  ab_kernel kernel_;
};

}  // namespace anabranch::device
