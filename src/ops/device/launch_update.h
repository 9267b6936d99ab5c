// How update rules declare their kernels for devices. Dense gradients alone: sparse ones stay on the CPU.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "ops/device/args_update.h"
#include "ops/device/launch_tensor.h"
#include "ops/optim/update.h"

namespace anabranch::device {

// What the kernel "update/<name>" takes, in its order.
struct UpdateRule {
  std::string name;
  optim::StateSlots states = {};
  std::vector<const char*> reads = {};  // inputs that hold one number; those that may be missing last
  std::vector<double> numbers = {};
};

// An attribute, rounded as the CPU's rules take it.
template <class T> double attribute(const KernelArgs& op, const char* name) {
  return static_cast<double>(optim::number<T>(op, name));
}

// What is updated in its place; an output without the memory of its input starts as a copy of it.
inline DeviceOut updated(const KernelContext& c, In in, Out out) {
  copy_whole(c, c[in], &c[out]);
  return operand(c[out]);
}

template <class T> class Update {
 public:
  Update(const KernelArgs& op, const UpdateRule& rule)
      : kernel_(kernel_of<T>("update/" + rule.name)),
        param_(op.in("Param")),
        grad_(op.in("Grad")),
        rate_(op.has_in("LearningRate") ? op.in("LearningRate") : In()),
        out_(op.out("ParamOut")) {
    for (size_t k = 0; k < rule.states.size(); ++k) {
      state_[k] = op.in(rule.states[k].in);
      state_out_[k] = op.out(rule.states[k].out);
    }
    for (size_t k = 0; k < rule.reads.size(); ++k) reads_[k] = op.in(rule.reads[k]);
    std::copy(rule.numbers.begin(), rule.numbers.end(), numbers_.begin());
  }

  void operator()(KernelContext& c) const { launch(c); }

  // Returns what the kernel was called with.
  UpdateArgs launch(KernelContext& c) const {
    UpdateArgs a{};
    a.param = updated(c, param_, out_);
    for (size_t k = 0; k < state_.size(); ++k) {
      if (state_[k]) a.state[k] = updated(c, state_[k], state_out_[k]);
    }
    a.grad = operand(c[grad_]);
    if (rate_) a.rate = one_number(c[rate_], kOtherFloat, a);
    for (size_t k = 0; k < reads_.size(); ++k) {
      if (reads_[k]) a.reads[k] = one_number(c[reads_[k]], other_float_read(static_cast<int>(k)), a);
    }
    a.n = c[out_].numel();
    std::copy(numbers_.begin(), numbers_.end(), a.p);
    DeviceContext::of(c).launch(kernel_, a);
    return a;
  }

 private:
  static DeviceIn one_number(const Tensor& t, int32_t other, UpdateArgs& a) {
    AB_CHECK(t.numel() == 1, InvalidArgument, "a scalar is expected, the tensor is {}", t.shape().str());
    if (t.dtype() != dtype_of<T>) a.flags |= other;
    return operand(t);
  }

  ab_kernel kernel_;
  In param_, grad_, rate_;
  Out out_;
  std::array<In, 3> state_{};
  std::array<Out, 3> state_out_{};
  std::array<In, 4> reads_{};
  std::array<double, 4> numbers_{};
};

}  // namespace anabranch::device
