#include "ops/device/launch_update.h"
#include "ops/optim/fused.h"
#include "ops/optim/fused_on_device.h"

namespace anabranch::optim::momentum_op {
namespace {

constexpr StateTable<1> kState = {{{"Velocity", "VelocityOut"}}};

// fn(rule)
template <class T, class Fn> Kernel with_rule(const KernelArgs& op, const Fn& fn) {
  const T mu = number<T>(op, "mu");
  if (op.attr<bool>("use_nesterov")) return fn(ByRule<rules::Nesterov, T>{{mu}});
  return fn(ByRule<rules::Momentum, T>{{mu}});
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
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return with_rule<T>(op, [&](auto rule) -> Kernel {
        const auto update = [&](Rows rows) { return elementwise_update<T>(op, kState, rows, rule); };
        return [all = update(Rows::kAll), none = update(Rows::kTouched), grad = op.in("Grad")](KernelContext& c) {
          skips_step(c.value(grad)) ? none(c) : all(c);
        };
      });
    })
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return device::Update<T>(op, rule_on_device<T>(op));
    });

AB_OP(fused_momentum)
    .with(fused_form_of(ab_op_momentum))
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return with_rule<T>(op, [&](auto rule) { return fused_update<T>(op, kState, rule); });
    })
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return FusedOnDevice<T>(op, rule_on_device<T>(op));
    });

}  // namespace
}  // namespace anabranch::optim::momentum_op
