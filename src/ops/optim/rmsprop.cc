#include "ops/device/launch_update.h"
#include "ops/optim/elementwise.h"

namespace anabranch::optim::rmsprop_op {
namespace {

constexpr StateTable<2> kPlain = {{{"MeanSquare", "MeanSquareOut"}, {"Moment", "MomentOut"}}};
constexpr StateTable<3> kCentered = {
    {{"MeanSquare", "MeanSquareOut"}, {"Moment", "MomentOut"}, {"MeanGrad", "MeanGradOut"}}};

// The mean of gradients is updated only if it is used.
template <class T> struct WithUnusedMean {
  ByRule<rules::RmsProp, T> by;
  void step(T* param, const std::array<T*, 3>& state, const T* grad, T rate, int64_t n) const {
    by.step(param, {state[0], state[1]}, grad, rate, n);
  }
};

void infer_rmsprop(InferContext& c) {
  AB_CHECK(!c.attr<bool>("centered") || c.has_in("MeanGrad"), InvalidArgument,
           "MeanGrad must be given if centered is set");
  AB_CHECK(!c.has_in("MeanGrad") || c.has_out("MeanGradOut"), InvalidArgument,
           "MeanGradOut must be given with MeanGrad");
  infer_update(c, c.has_in("MeanGrad") ? as_slots(kCentered) : as_slots(kPlain));
  if (!c.has_in("MeanGrad")) c.set_out("MeanGradOut", Shape{0}, c.in("Param").dtype);
}

AB_OP(rmsprop)
    .doc(
        "MeanSquareOut = decay MeanSquare + (1 - decay) Grad^2; MomentOut = momentum Moment + LearningRate Grad / "
        "sqrt(MeanSquareOut + epsilon), where centered subtracts the square of the mean gradient under the root; "
        "ParamOut = Param - MomentOut. Rows missing from a sparse Grad have a zero gradient.")
    .source(
        "Tieleman & Hinton, Neural Networks for Machine Learning, lecture 6.5, 2012; centered: Graves 2013, "
        "arXiv:1308.0850")
    .with(updates(as_slots(kPlain)))
    .with(rows_on_devices)
    .in_optional("MeanGrad", "like Param; required by centered")
    .out_optional("MeanGradOut", "MeanGrad, updated in place if centered")
    .attr<float>("epsilon", 1.0e-10f, "keeps the quotient finite")
    .attr<float>("decay", 0.9f, "weight of the old averages")
    .attr<float>("momentum", 0.0f, "momentum coefficient")
    .attr<bool>("centered", false, "normalizes by the variance instead of the second moment")
    .infer(infer_rmsprop)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const T decay = number<T>(op, "decay"), mu = number<T>(op, "momentum"), epsilon = number<T>(op, "epsilon");
      const ByRule<rules::RmsProp, T> plain{{decay, mu, epsilon}};
      if (!op.in("MeanGrad")) return elementwise_update<T>(op, kPlain, Rows::kAll, plain);
      if (!op.attr<bool>("centered")) {
        return elementwise_update<T>(op, kCentered, Rows::kAll, WithUnusedMean<T>{plain});
      }
      return elementwise_update<T>(op, kCentered, Rows::kAll, ByRule<rules::CenteredRmsProp, T>{{decay, mu, epsilon}});
    })
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const bool centered = op.attr<bool>("centered");
      const device::UpdateRule rule{.name = "rmsprop",
                                    .states = centered ? as_slots(kCentered) : as_slots(kPlain),
                                    .numbers = {device::attribute<T>(op, "decay"), device::attribute<T>(op, "momentum"),
                                                device::attribute<T>(op, "epsilon")},
                                    .rows = Rows::kAll};
      const In mean = centered ? In() : op.in("MeanGrad");  // not updated then
      return [mean, mean_out = op.out("MeanGradOut"), update = device::Update<T>(op, rule)](const DeviceContext& c) {
        if (mean) device::copy_whole(c, c[mean], &c[mean_out]);
        update(c);
      };
    });

}  // namespace
}  // namespace anabranch::optim::rmsprop_op
