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
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return elementwise_update<T>(op, kNoState, Rows::kTouched, kRule<T>);
    })
    .device<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      return device::Update<typename decltype(tag)::type>(op, {.name = "sgd", .rows = Rows::kTouched});
    });

AB_OP(fused_sgd)
    .with(fused_form_of(ab_op_sgd))
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return fused_update<T>(op, kNoState, kRule<T>);
    })
    .device<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      return FusedOnDevice<typename decltype(tag)::type>(op, {.name = "sgd"});
    });

}  // namespace
}  // namespace anabranch::optim::sgd_op
