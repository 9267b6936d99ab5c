// How update rules declare their device kernels, for dense gradients and, .with(rows_on_devices), for sparse ones.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "opdef/device_rows.h"
#include "ops/device/args_update.h"
#include "ops/device/launch_rows.h"
#include "ops/device/launch_tensor.h"
#include "ops/optim/update.h"

namespace anabranch::device {

// The inputs of the kernel "update/<name>", in its order.
struct UpdateRule {
  std::string name;
  optim::StateSlots states = {};
  std::vector<const char*> reads = {};  // inputs that hold one number; optional ones last
  std::vector<double> numbers = {};
  std::optional<optim::Rows> rows = {};  // which rows sparse gradients update; nullopt: dense gradients only
};

// An attribute, rounded like that of the CPU's rules.
template <class T> double attribute(const KernelArgs& op, const char* name) {
  return static_cast<double>(optim::number<T>(op, name));
}

// Updates the rows that a sparse gradient names, or all rows, by "update_touched/<name>" or "update_rows/<name>".
class UpdateRows {
 public:
  UpdateRows(ab_kernel kernel) : kernel_(kernel) {}
  template <class T> static UpdateRows of(const std::string& name, optim::Rows which) {
    return {kernel_of<T>((which == optim::Rows::kTouched ? "update_touched/" : "update_rows/") + name)};
  }
  // a: without the gradient.
  void launch(const DeviceContext& c, const SelectedRows& grad, const Shape& param, UpdateArgs a) {
    const Shape& values = grad.value.shape();
    AB_CHECK(grad.height == param[0] && values.rank() == param.rank() &&
                 values.slice(1, values.rank()) == param.slice(1, param.rank()),
             ShapeMismatch,
             "sparse gradient must have the height and row width of its parameter, got height {} and values {} for "
             "parameter {}",
             grad.height, values.str(), param.str());
    a.grad = operand(grad.value);
    c.launch(kernel_, UpdateRowsArgs{a, groups_.of(c, ids_of(grad), grad.height), values[0], grad.height,
                                     grad.value.row_elems()});
  }

 private:
  ab_kernel kernel_;
  GroupedIds groups_;
};

// The tensor to update in place; an output in other memory than its input starts as a copy of it.
inline DeviceOut updated(const KernelContext& c, In in, Out out) {
  copy_whole(c, c[in], &c[out]);
  return operand(c[out]);
}

// Of either float dtype.
template <class T> DeviceIn one_number(const Tensor& t, int32_t other, UpdateArgs& a) {
  AB_CHECK(t.numel() == 1, InvalidArgument, "a scalar input must have one element, got shape {}", t.shape().str());
  if (t.dtype() != dtype_of<T>) a.flags |= other;
  return operand(t);
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
    if (rule.rows) sparse_ = std::make_shared<UpdateRows>(UpdateRows::of<T>(rule.name, *rule.rows));
  }

  void operator()(const DeviceContext& c) const { launch(c); }

  // Returns the arguments of the launch.
  UpdateArgs launch(const DeviceContext& c) const {
    UpdateArgs a{};
    a.param = updated(c, param_, out_);
    for (size_t k = 0; k < state_.size(); ++k) {
      if (state_[k]) a.state[k] = updated(c, state_[k], state_out_[k]);
    }
    if (rate_) a.rate = one_number<T>(c[rate_], kOtherFloat, a);
    for (size_t k = 0; k < reads_.size(); ++k) {
      if (reads_[k]) a.reads[k] = one_number<T>(c[reads_[k]], other_float_read(static_cast<int>(k)), a);
    }
    a.n = c[out_].numel();
    std::copy(numbers_.begin(), numbers_.end(), a.p);
    if (const auto* rows = c.value(grad_).get<SelectedRows>(); rows && sparse_) {
      a.flags |= kNextPowers;
      sparse_->launch(c, *rows, c[param_].shape(), a);
      return a;
    }
    a.grad = operand(c[grad_]);
    c.launch(kernel_, a);
    return a;
  }

 private:
  ab_kernel kernel_;
  std::shared_ptr<UpdateRows> sparse_;
  In param_, grad_, rate_;
  Out out_;
  std::array<In, 3> state_{};
  std::array<Out, 3> state_out_{};
  std::array<In, 4> reads_{};
  std::array<double, 4> numbers_{};
};

}  // namespace anabranch::device
