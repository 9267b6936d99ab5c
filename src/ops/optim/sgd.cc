#include "ops/device/launch_update.h"
#include "ops/optim/element_rules.h"
#include "ops/optim/fused.h"
#include "ops/optim/fused_on_device.h"
#include "ops/optim/rule_loops.h"

namespace anabranch::optim::sgd_op {
namespace {

constexpr StateTable<0> kNoState = {};

struct Sgd {
  template <class T> void step(T* param, const std::array<T*, 0>&, const T* grad, T rate, int64_t n) const {
    if constexpr (std::is_same_v<T, float>) return loops::sgd(param, grad, rate, n);
    for (int64_t i = 0; i < n; ++i) rules::sgd(param[i], grad[i], rate);
  }
};

AB_OP(sgd)
    .doc("Gradient descent: ParamOut = Param - LearningRate * Grad. A sparse Grad updates only its rows.")
    .with(updates())
    .with(rows_on_devices)
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return elementwise_update<T>(op, kNoState, Rows::kTouched, Sgd());
    })
    .device<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      return device::Update<typename decltype(tag)::type>(op, {.name = "sgd", .rows = Rows::kTouched});
    });

AB_OP(fused_sgd)
    .with(fused_form_of(ab_op_sgd))
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      return fused_update<typename decltype(tag)::type>(op, kNoState, Sgd());
    })
    .device<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      return FusedOnDevice<typename decltype(tag)::type>(op, {.name = "sgd"});
    });

}  // namespace
}  // namespace anabranch::optim::sgd_op
