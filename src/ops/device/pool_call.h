// Pools by the library of a device, of the dims that those of the CPU have.
#pragma once
#include "opdef/library_call.h"
#include "ops/device/windows.h"
#include "ops/nn/pool_dims.h"

namespace anabranch::device {

template <class T> class PoolCall {
 public:
  PoolCall(const char* key, bool is_max) : call_(key), is_max_(is_max) {}
  void run(const DeviceContext& c, const nn::PoolDims& d, std::initializer_list<ab_operand> operands) {
    PoolDesc desc{};
    desc.window = describe(d.window, d.channels_last);
    desc.batch = d.batch;
    desc.channels = d.channels;
    desc.is_max = is_max_;
    desc.adaptive = d.adaptive;
    desc.count_padding = !d.exclusive;
    desc.dtype = static_cast<int32_t>(dtype_of<T>);
    call_.run(c, desc, operands);
  }

 private:
  LibraryCall call_;
  bool is_max_;
};

}  // namespace anabranch::device
