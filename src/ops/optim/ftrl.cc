#include "ops/device/launch_update.h"
#include "ops/optim/elementwise.h"

namespace anabranch::optim::ftrl_op {
namespace {

constexpr StateTable<2> kState = {{{"SquaredAccumulator", "SquaredAccumOut"}, {"LinearAccumulator", "LinearAccumOut"}}};

AB_OP(ftrl)
    .doc(
        "Follow the regularized leader: with n the sum of Grad^2 and z the linear accumulator, z += Grad - "
        "(n'^-lr_power - n^-lr_power) / LearningRate Param; ParamOut = 0 where |z| <= l1, else (sign(z) l1 - z) / "
        "(n'^-lr_power / LearningRate + 2 l2).")
    .source("McMahan et al., KDD 2013, doi:10.1145/2487575.2488200")
    .with(updates(as_slots(kState)))
    .with(rows_on_devices)
    .attr<float>("l1", 0.0f, "weight of the absolute values")
    .attr<float>("l2", 0.0f, "weight of the squares")
    .attr<float>("lr_power", -0.5f, "exponent of the learning rate, at most 0")
    .merges(StateMerge::kSum)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const ByRule<rules::Ftrl, T> rule{{number<T>(op, "l1"), number<T>(op, "l2"), number<T>(op, "lr_power")}};
      return elementwise_update<T>(op, kState, Rows::kAll, rule);
    })
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return device::Update<T>(op, {.name = "ftrl",
                                    .states = as_slots(kState),
                                    .numbers = {device::attribute<T>(op, "l1"), device::attribute<T>(op, "l2"),
                                                device::attribute<T>(op, "lr_power")},
                                    .rows = Rows::kAll});
    });

}  // namespace
}  // namespace anabranch::optim::ftrl_op
