#include "ops/optim/elementwise.h"
#include "ops/optim/fused.h"
#include "ops/optim/rule_loops.h"

namespace anabranch {
namespace {

constexpr optim::StateTable<1> kState = {{{"Velocity", "VelocityOut"}}};

template <class T> struct Momentum {
  T mu;
  bool nesterov;
  void step(T* param, const std::array<T*, 1>& state, const T* grad, T rate, int64_t n) const {
    const T m = mu;
    T* velocity = state[0];
    if constexpr (std::is_same_v<T, float>) {
      return optim::loops::momentum({m, nesterov}, param, velocity, grad, rate, n);
    }
    if (nesterov) {
      for (int64_t i = 0; i < n; ++i) {
        velocity[i] = velocity[i] * m + grad[i];
        param[i] -= (grad[i] + velocity[i] * m) * rate;
      }
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      velocity[i] = velocity[i] * m + grad[i];
      param[i] -= rate * velocity[i];
    }
  }
};

template <class T> Momentum<T> momentum_of(const KernelArgs& op) {
  return {static_cast<T>(op.attr<float>("mu")), op.attr<bool>("use_nesterov")};
}

AB_OP(momentum)
    .doc(
        "VelocityOut = mu * Velocity + Grad; ParamOut = Param - LearningRate * VelocityOut, or with Nesterov's form "
        "Param - LearningRate * (Grad + mu * VelocityOut). Rows that a sparse Grad lacks have gradient zero.")
    .source("Polyak 1964, doi:10.1016/0041-5553(64)90137-5; Sutskever et al., ICML 2013")
    .in("Param", "[...] float")
    .in("Grad", "as Param, dense or sparse")
    .takes("Grad", Holds::kTensorOrRows)
    .in("Velocity", "as Param")
    .in("LearningRate", "[1] float")
    .out("ParamOut", "Param, updated in place")
    .out("VelocityOut", "Velocity, updated in place")
    .attr<float>("mu", 0.0f, "momentum coefficient")
    .attr<bool>("use_nesterov", false, "Nesterov's form")
    .infer([](InferContext& c) { optim::infer_update(c, optim::as_slots(kState)); })
    .no_grad(optim::kNoGrad)
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return optim::elementwise_update<T>(op, kState, optim::Rows::kAll, momentum_of<T>(op));
    });

AB_OP(fused_momentum).effects(kEngineOnly);
[[maybe_unused]] const bool fused_declared =
    (optim::declare_fused(ab_op_fused_momentum, ab_op_momentum)
         .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
           using T = typename decltype(tag)::type;
           return optim::fused_update<T, 1>(op, {"VelocityOut"}, momentum_of<T>(op));
         }),
     true);

}  // namespace
}  // namespace anabranch
