#include "ops/device/launch_update.h"
#include "ops/optim/element_rules.h"
#include "ops/optim/elementwise.h"
#include "ops/optim/rule_loops.h"

namespace anabranch::optim::rmsprop_op {
namespace {

constexpr StateTable<2> kPlain = {{{"MeanSquare", "MeanSquareOut"}, {"Moment", "MomentOut"}}};
constexpr StateTable<3> kCentered = {
    {{"MeanSquare", "MeanSquareOut"}, {"Moment", "MomentOut"}, {"MeanGrad", "MeanGradOut"}}};

template <class T> struct RmsProp {
  T decay, momentum, epsilon;
  bool centered;
  void step(T* param, const std::array<T*, 2>& state, const T* grad, T rate, int64_t n) const {
    T *square = state[0], *moment = state[1];
    if constexpr (std::is_same_v<T, float>) {
      return loops::rmsprop({decay, momentum, epsilon}, param, square, moment, nullptr, grad, rate, n);
    }
    const T keep = decay, add = 1 - decay, mu = momentum, eps = epsilon;
    for (int64_t i = 0; i < n; ++i) {
      rules::rmsprop(param[i], square[i], moment[i], grad[i], keep, add, mu, eps, rate);
    }
  }
  // With an optional mean of gradients, which is updated only if it is used.
  void step(T* param, const std::array<T*, 3>& state, const T* grad, T rate, int64_t n) const {
    if (!centered) return step(param, std::array<T*, 2>{state[0], state[1]}, grad, rate, n);
    T *square = state[0], *moment = state[1], *mean = state[2];
    if constexpr (std::is_same_v<T, float>) {
      return loops::rmsprop({decay, momentum, epsilon}, param, square, moment, mean, grad, rate, n);
    }
    const T keep = decay, add = 1 - decay, mu = momentum, eps = epsilon;
    for (int64_t i = 0; i < n; ++i) {
      rules::centered_rmsprop(param[i], square[i], moment[i], mean[i], grad[i], keep, add, mu, eps, rate);
    }
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
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      const RmsProp<T> rule{number<T>(op, "decay"), number<T>(op, "momentum"), number<T>(op, "epsilon"),
                            op.attr<bool>("centered")};
      if (op.in("MeanGrad")) return elementwise_update<T>(op, kCentered, Rows::kAll, rule);
      return elementwise_update<T>(op, kPlain, Rows::kAll, rule);
    })
    .device<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      const bool centered = op.attr<bool>("centered");
      const device::UpdateRule rule{.name = "rmsprop",
                                    .states = centered ? as_slots(kCentered) : as_slots(kPlain),
                                    .numbers = {device::attribute<T>(op, "decay"), device::attribute<T>(op, "momentum"),
                                                device::attribute<T>(op, "epsilon")},
                                    .rows = Rows::kAll};
      const In mean = centered ? In() : op.in("MeanGrad");  // not updated then
      return [mean, mean_out = op.out("MeanGradOut"), update = device::Update<T>(op, rule)](KernelContext& c) {
        if (mean) device::copy_whole(c, c[mean], &c[mean_out]);
        update(c);
      };
    });

}  // namespace
}  // namespace anabranch::optim::rmsprop_op
