// Batch norm over several devices: "batch_norm_sums", "batch_norm_by_sums", "batch_norm_grad_by_sums".
#include "ops/nn/batch_norm_sums.h"

#include "ops/device/kernels.h"

namespace anabranch::device {

struct AddressOf {
  template <class E, bool kWrites> static auto get(const DevicePtr<kWrites>& p) { return p.template get<E>(); }
};

template <template <class T> class Body> struct EachChannel {
  using Args = NormSumsArgs;
  template <class T> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.channels, a.outer * a.inner, Body<T>{nn::NormBySums<T>::template of<AddressOf>(a)});
  }
};

AB_KERNEL("batch_norm_sums", EachChannel<nn::AddUp>, float, double, half, bfloat16);
AB_KERNEL("batch_norm_by_sums", EachChannel<nn::Normalize>, float, double, half, bfloat16);
AB_KERNEL("batch_norm_grad_by_sums", EachChannel<nn::Differentiate>, float, double, half, bfloat16);

}  // namespace anabranch::device
