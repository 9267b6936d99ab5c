#include "ops/device/launch_update.h"
#include "ops/optim/fused.h"
#include "ops/optim/fused_on_device.h"

namespace anabranch::optim::sgd_op {
namespace {

constexpr StateTable<0> kNoState = {};

template <class T> constexpr ByRule<rules::Sgd, T> kRule = {};

AB_OP(sgd)
    .doc("Gradient descent: ParamOut = Param - LearningRate * Grad. A sparse Grad updates only its rows.")
    .with(updates())
    .with(rows_on_devices)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return elementwise_update<T>(op, kNoState, Rows::kTouched, kRule<T>);
    })
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return device::Update<T>(op, {.name = "sgd", .rows = Rows::kTouched});
    });

AB_OP(fused_sgd)
    .with(fused_form_of(ab_op_sgd))
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return fused_update<T>(op, kNoState, kRule<T>);
    })
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return FusedOnDevice<T>(op, {.name = "sgd"});
    });

}  // namespace
}  // namespace anabranch::optim::sgd_op
