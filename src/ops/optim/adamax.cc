#include "ops/device/launch_update.h"
#include "ops/optim/elementwise.h"

namespace anabranch::optim::adamax_op {
namespace {

constexpr StateTable<2> kState = {{{"Moment", "MomentOut"}, {"InfNorm", "InfNormOut"}}};

AB_OP(adamax)
    .doc(
        "Adam with the infinity norm: InfNormOut = max(beta2 InfNorm + epsilon, |Grad|); "
        "ParamOut = Param - LearningRate / (1 - Beta1Pow) MomentOut / InfNormOut.")
    .source("Kingma & Ba, ICLR 2015, arXiv:1412.6980")
    .with(updates(as_slots(kState)))
    .with(rows_on_devices)
    .in("Beta1Pow", "[1]: beta1 to the power of the step")
    .attr<float>("beta1", 0.9f, "decay of the moment")
    .attr<float>("beta2", 0.999f, "decay of the norm")
    .attr<float>("epsilon", 1.0e-8f, "keeps the quotient finite")
    .infer([](InferContext& c) {
      infer_update(c, as_slots(kState));
      check_numel(c, "Beta1Pow", 1);
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const ByRule<rules::Adamax, T> rule{{number<T>(op, "beta1"), number<T>(op, "beta2"), number<T>(op, "epsilon")}};
      const In rate = op.in("LearningRate"), pow = op.in("Beta1Pow");
      return elementwise_update<T>(op, kState, Rows::kAll, rule,
                                   [=](KernelContext& c) { return scalar<T>(c[rate]) / (1 - scalar<T>(c[pow])); });
    })
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return device::Update<T>(op, {.name = "adamax",
                                    .states = as_slots(kState),
                                    .reads = {"Beta1Pow"},
                                    .numbers = {device::attribute<T>(op, "beta1"), device::attribute<T>(op, "beta2"),
                                                device::attribute<T>(op, "epsilon")},
                                    .rows = Rows::kAll});
    });

}  // namespace
}  // namespace anabranch::optim::adamax_op
