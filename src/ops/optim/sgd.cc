#include "ops/optim/fused.h"
#include "ops/optim/rule_loops.h"

namespace anabranch {
namespace {

struct Sgd {
  template <class T> void step(T* param, const std::array<T*, 0>&, const T* grad, T rate, int64_t n) const {
    if constexpr (std::is_same_v<T, float>) return optim::loops::sgd(param, grad, rate, n);
    for (int64_t i = 0; i < n; ++i) param[i] -= rate * grad[i];
  }
};

AB_OP(sgd)
    .doc("Gradient descent: ParamOut = Param - LearningRate * Grad. A sparse Grad touches its rows only.")
    .in("Param", "[...] float")
    .in("LearningRate", "[1] float")
    .in("Grad", "as Param, dense or sparse")
    .takes("Grad", Holds::kTensorOrRows)
    .out("ParamOut", "Param, updated in place")
    .infer([](InferContext& c) { optim::infer_update(c, {}); })
    .no_grad(optim::kNoGrad)
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      const In param = op.in("Param"), grad = op.in("Grad"), rate = op.in("LearningRate");
      const Out param_out = op.out("ParamOut");
      optim::Gradients<T> gradients;
      return [=](KernelContext& c) mutable {
        const T lr = optim::scalar<T>(c[rate]);
        T* p = optim::updated<T>(c, param, param_out);
        gradients.read(c.value(grad), c[param]);
        gradients.update(c, optim::Rows::kTouched,
                         [=](int64_t i, int64_t n, const T* g) { Sgd().step(p + i, {}, g, lr, n); });
      };
    });

AB_OP(fused_sgd).effects(kEngineOnly);
[[maybe_unused]] const bool fused_declared =
    (optim::declare_fused(ab_op_fused_sgd, ab_op_sgd).cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      return optim::fused_update<typename decltype(tag)::type, 0>(op, {}, Sgd());
    }),
     true);

}  // namespace
}  // namespace anabranch
