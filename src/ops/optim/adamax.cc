#include <cmath>

#include "ops/optim/elementwise.h"
#include "ops/optim/rule_loops.h"

namespace anabranch {
namespace {

constexpr optim::StateTable<2> kState = {{{"Moment", "MomentOut"}, {"InfNorm", "InfNormOut"}}};

template <class T> struct Adamax {
  T beta1, beta2, epsilon;
  void step(T* param, const std::array<T*, 2>& state, const T* grad, T rate, int64_t n) const {
    T *moment = state[0], *norm = state[1];
    if constexpr (std::is_same_v<T, float>) {
      return optim::loops::adamax({beta1, beta2, epsilon}, param, moment, norm, grad, rate, n);
    }
    const T keep1 = beta1, add1 = 1 - beta1, keep2 = beta2, eps = epsilon;
    for (int64_t i = 0; i < n; ++i) {
      moment[i] = keep1 * moment[i] + add1 * grad[i];
      norm[i] = std::max(std::abs(grad[i]), keep2 * norm[i] + eps);
      param[i] -= rate * (moment[i] / norm[i]);
    }
  }
};

AB_OP(adamax)
    .doc(
        "Adam with the infinity norm: InfNormOut = max(beta2 InfNorm + epsilon, |Grad|); "
        "ParamOut = Param - LearningRate / (1 - Beta1Pow) MomentOut / InfNormOut.")
    .source("Kingma & Ba, ICLR 2015, arXiv:1412.6980")
    .in("Param", "[...] float")
    .in("Grad", "as Param, dense or sparse")
    .takes("Grad", Holds::kTensorOrRows)
    .in("LearningRate", "[1] float")
    .in("Moment", "as Param")
    .in("InfNorm", "as Param")
    .in("Beta1Pow", "[1]: beta1 to the power of the step")
    .out("ParamOut", "Param, updated in place")
    .out("MomentOut", "Moment, updated in place")
    .out("InfNormOut", "InfNorm, updated in place")
    .attr<float>("beta1", 0.9f, "decay of the moment")
    .attr<float>("beta2", 0.999f, "decay of the norm")
    .attr<float>("epsilon", 1.0e-8f, "keeps the quotient finite")
    .infer([](InferContext& c) {
      optim::infer_update(c, optim::as_slots(kState));
      check_numel(c, "Beta1Pow", 1);
    })
    .no_grad(optim::kNoGrad)
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      const Adamax<T> rule{static_cast<T>(op.attr<float>("beta1")), static_cast<T>(op.attr<float>("beta2")),
                           static_cast<T>(op.attr<float>("epsilon"))};
      const In rate = op.in("LearningRate"), pow = op.in("Beta1Pow");
      return optim::elementwise_update<T>(op, kState, optim::Rows::kAll, rule, [=](KernelContext& c) {
        return optim::scalar<T>(c[rate]) / (1 - optim::scalar<T>(c[pow]));
      });
    });

}  // namespace
}  // namespace anabranch
