// Rules with learning rates that shrink with the squares of past gradients: Adagrad, its decayed form and Adadelta.
#include "ops/device/launch_update.h"
#include "ops/optim/elementwise.h"

namespace anabranch::optim::adagrad_op {
namespace {

constexpr StateTable<1> kMoment = {{{"Moment", "MomentOut"}}};
constexpr StateTable<2> kAverages = {
    {{"AvgSquaredGrad", "AvgSquaredGradOut"}, {"AvgSquaredUpdate", "AvgSquaredUpdateOut"}}};

AB_OP(adagrad)
    .doc("MomentOut = Moment + Grad^2; ParamOut = Param - LearningRate Grad / (sqrt(MomentOut) + epsilon).")
    .source("Duchi et al., JMLR 12, 2011")
    .with(updates(as_slots(kMoment)))
    .with(rows_on_devices)
    .attr<float>("epsilon", 1.0e-6f, "keeps the quotient finite")
    .merges(StateMerge::kSum)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const ByRule<rules::Adagrad, T> rule{{number<T>(op, "epsilon")}};
      return elementwise_update<T>(op, kMoment, Rows::kTouched, rule);
    })
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return device::Update<T>(op, {.name = "adagrad",
                                    .states = as_slots(kMoment),
                                    .numbers = {1, 1, device::attribute<T>(op, "epsilon")},
                                    .rows = Rows::kTouched});
    });

AB_OP(decayed_adagrad)
    .doc(
        "MomentOut = decay Moment + (1 - decay) Grad^2; ParamOut = Param - LearningRate Grad / (sqrt(MomentOut) + "
        "epsilon).")
    .source("Duchi et al., JMLR 12, 2011")
    .with(updates(as_slots(kMoment)))
    .with(rows_on_devices)
    .attr<float>("decay", 0.95f, "weight of the old moment")
    .attr<float>("epsilon", 1.0e-6f, "keeps the quotient finite")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const T decay = number<T>(op, "decay");
      const ByRule<rules::DecayedAdagrad, T> rule{{decay, 1 - decay, number<T>(op, "epsilon")}};
      return elementwise_update<T>(op, kMoment, Rows::kAll, rule);
    })
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const T decay = number<T>(op, "decay");
      return device::Update<T>(op, {.name = "adagrad",
                                    .states = as_slots(kMoment),
                                    .numbers = {static_cast<double>(decay), static_cast<double>(1 - decay),
                                                device::attribute<T>(op, "epsilon")},
                                    .rows = Rows::kAll});
    });

AB_OP(adadelta)
    .doc(
        "Adadelta: u(a) = -sqrt((a + epsilon) / (AvgSquaredGradOut + epsilon)) Grad; AvgSquaredUpdateOut = rho "
        "AvgSquaredUpdate + (1 - rho) u(AvgSquaredUpdate)^2; ParamOut = Param + u(AvgSquaredUpdateOut).")
    .source("Zeiler 2012, arXiv:1212.5701")
    .with(updates(as_slots(kAverages), /*with_rate=*/false))
    .with(rows_on_devices)
    .attr<float>("rho", 0.95f, "weight of the old averages")
    .attr<float>("epsilon", 1.0e-6f, "keeps the quotient finite")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const ByRule<rules::Adadelta, T> rule{{number<T>(op, "rho"), number<T>(op, "epsilon")}};
      return elementwise_update<T>(op, kAverages, Rows::kAll, rule, [](KernelContext&) { return T{1}; });
    })
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return device::Update<T>(op, {.name = "adadelta",
                                    .states = as_slots(kAverages),
                                    .numbers = {device::attribute<T>(op, "rho"), device::attribute<T>(op, "epsilon")},
                                    .rows = Rows::kAll});
    });

}  // namespace
}  // namespace anabranch::optim::adagrad_op
