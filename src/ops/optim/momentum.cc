#include "ops/device/launch_update.h"
#include "ops/optim/element_rules.h"
#include "ops/optim/fused.h"
#include "ops/optim/fused_on_device.h"
#include "ops/optim/rule_loops.h"

namespace anabranch::optim::momentum_op {
namespace {

constexpr StateTable<1> kState = {{{"Velocity", "VelocityOut"}}};

template <class T> struct Momentum {
  T mu;
  bool nesterov;
  void step(T* param, const std::array<T*, 1>& state, const T* grad, T rate, int64_t n) const {
    const T m = mu;
    T* velocity = state[0];
    if constexpr (std::is_same_v<T, float>) {
      return loops::momentum({m, nesterov}, param, velocity, grad, rate, n);
    }
    if (nesterov) {
      for (int64_t i = 0; i < n; ++i) rules::nesterov(param[i], velocity[i], grad[i], m, rate);
      return;
    }
    for (int64_t i = 0; i < n; ++i) rules::momentum(param[i], velocity[i], grad[i], m, rate);
  }
};

template <class T> Momentum<T> momentum_of(const KernelArgs& op) {
  return {number<T>(op, "mu"), op.attr<bool>("use_nesterov")};
}

template <class T> device::UpdateRule rule_on_device(const KernelArgs& op) {
  return {.name = op.attr<bool>("use_nesterov") ? "nesterov" : "momentum",
          .states = as_slots(kState),
          .numbers = {device::attribute<T>(op, "mu")},
          .rows = Rows::kAll};
}

AB_OP(momentum)
    .doc(
        "VelocityOut = mu * Velocity + Grad; ParamOut = Param - LearningRate * VelocityOut, or with Nesterov momentum "
        "Param - LearningRate * (Grad + mu * VelocityOut). Rows missing from a sparse Grad have a zero gradient.")
    .source("Polyak 1964, doi:10.1016/0041-5553(64)90137-5; Sutskever et al., ICML 2013")
    .with(updates(as_slots(kState)))
    .with(rows_on_devices)
    .attr<float>("mu", 0.0f, "momentum coefficient")
    .attr<bool>("use_nesterov", false, "uses Nesterov momentum")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return elementwise_update<T>(op, kState, Rows::kAll, momentum_of<T>(op));
    })
    .device<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return device::Update<T>(op, rule_on_device<T>(op));
    });

AB_OP(fused_momentum)
    .with(fused_form_of(ab_op_momentum))
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return fused_update<T>(op, kState, momentum_of<T>(op));
    })
    .device<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return FusedOnDevice<T>(op, rule_on_device<T>(op));
    });

}  // namespace
}  // namespace anabranch::optim::momentum_op
