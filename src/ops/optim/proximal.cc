// Steps followed by l1 and l2 shrinkage, scaled by the learning rate.
#include <cmath>

#include "ops/optim/elementwise.h"

namespace anabranch::optim::proximal_op {
namespace {

constexpr StateTable<0> kNoState = {};
constexpr StateTable<1> kMoment = {{{"Moment", "MomentOut"}}};

// sign(v) max(|v| - rate l1, 0) / (1 + rate l2)
template <class T> struct Shrink {
  T l1, l2;
  T operator()(T v, T rate) const {
    const T size = l1 > 0 ? std::max(std::abs(v) - rate * l1, T{0}) : std::abs(v);
    return std::copysign(size, v) / (1 + rate * l2);
  }
};

template <class T> struct ProximalDescent {
  Shrink<T> shrink;
  void step(T* param, const std::array<T*, 0>&, const T* grad, T rate, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) param[i] = shrink(param[i] - rate * grad[i], rate);
  }
};

template <class T> struct ProximalAdagrad {
  Shrink<T> shrink;
  void step(T* param, const std::array<T*, 1>& state, const T* grad, T rate, int64_t n) const {
    T* moment = state[0];
    for (int64_t i = 0; i < n; ++i) {
      moment[i] += grad[i] * grad[i];
      param[i] = shrink(param[i] - rate * grad[i] / std::sqrt(moment[i]), rate);
    }
  }
};

void shrink_attrs(OpDef& def) {
  def.attr<float>("l1", 0.0f, "l1 penalty, times the learning rate")
      .attr<float>("l2", 0.0f, "l2 penalty, times the learning rate");
}

template <class T> Shrink<T> shrink_of(const KernelArgs& op) { return {number<T>(op, "l1"), number<T>(op, "l2")}; }

AB_OP(proximal_gd)
    .doc(
        "With v = Param - LearningRate Grad: ParamOut = sign(v) max(|v| - LearningRate l1, 0) / (1 + LearningRate l2).")
    .source("Duchi & Singer, JMLR 10, 2009")
    .with(updates())
    .with(shrink_attrs)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return elementwise_update<T>(op, kNoState, Rows::kAll, ProximalDescent<T>{shrink_of<T>(op)});
    });

AB_OP(proximal_adagrad)
    .doc(
        "MomentOut = Moment + Grad^2; with v = Param - LearningRate Grad / sqrt(MomentOut): ParamOut = sign(v) max(|v| "
        "- LearningRate l1, 0) / (1 + LearningRate l2).")
    .source("Duchi & Singer, JMLR 10, 2009; Duchi et al., JMLR 12, 2011")
    .with(updates(as_slots(kMoment)))
    .with(shrink_attrs)
    .merges(StateMerge::kSum)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return elementwise_update<T>(op, kMoment, Rows::kAll, ProximalAdagrad<T>{shrink_of<T>(op)});
    });

}  // namespace
}  // namespace anabranch::optim::proximal_op
