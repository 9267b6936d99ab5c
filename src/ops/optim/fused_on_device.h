// Fused update rules on devices: one launch over the elements of all parameters, "update_many/<rule>". Their addresses
// are in a table in device memory, which is copied there when it differs from the previous step's. Gradients may be
// unscaled (fused.h).
#pragma once
#include <vector>

#include "ops/device/launch_update.h"
#include "ops/device/upload.h"

namespace anabranch::optim {

template <class T> class FusedOnDevice {
 public:
  // rule: that of one parameter. Its reads become arguments in order, followed by its states and `numbers_out`: outputs
  // that hold one number, for a kernel after the update.
  FusedOnDevice(const KernelArgs& op, const device::UpdateRule& rule, const std::vector<const char*>& numbers_out = {})
      : kernel_(device::kernel_of<T>("update_many/" + rule.name)),
        grad_(op.in("Grad")),
        rate_(op.in("LearningRate")),
        scale_(op.in("Scale")),
        scale_of_(op.attr<std::vector<int32_t>>("scale_of")),
        param_(op.out("ParamOut")),
        table_(static_cast<size_t>(param_.count)),
        starts_(table_.size() + 1) {
    for (const StateSlot& slot : rule.states) states_.push_back(op.out(slot.out));
    for (const char* slot : numbers_out) states_.push_back(op.out(slot));
    for (const char* slot : rule.reads) reads_.push_back(op.in(slot));
    for (device::UpdateManyEntry& own : table_) std::copy(rule.numbers.begin(), rule.numbers.end(), own.update.p);
  }

  void operator()(const DeviceContext& c) { launch(c); }

  // Returns the arguments of the launch.
  device::UpdateManyArgs launch(const DeviceContext& c) {
    for (int k = 0; k < param_.count; ++k) fill(c, k, table_[static_cast<size_t>(k)]);
    const device::UpdateManyArgs args{uploads_.of(c, table_), starts_there_.of(c, starts_),
                                      static_cast<int64_t>(table_.size()), starts_.back()};
    c.launch(kernel_, args);
    return args;
  }

 private:
  void fill(const KernelContext& c, int k, device::UpdateManyEntry& own) {
    device::UpdateArgs& a = own.update;
    a.flags = 0;
    a.param = device::operand(c.at(param_, k));
    for (size_t s = 0; s < states_.size(); ++s) a.state[s] = device::operand(c.at(states_[s], k));
    take_gradient(c, k, own);
    a.rate = device::one_number<T>(c.at(rate_, k), device::kOtherFloat, a);
    for (size_t r = 0; r < reads_.size(); ++r) {
      a.reads[r] = device::one_number<T>(c.at(reads_[r], k), device::other_float_read(static_cast<int>(r)), a);
    }
    a.n = c.at(param_, k).numel();
    const int64_t chunks = (a.n + device::kUpdateChunk - 1) / device::kUpdateChunk;
    starts_[static_cast<size_t>(k) + 1] = starts_[static_cast<size_t>(k)] + chunks;
  }

  // Unscaled: of another float type than the parameter, and not yet divided.
  void take_gradient(const KernelContext& c, int k, device::UpdateManyEntry& own) {
    const Tensor& grad = c.at(grad_, k);
    own.update.grad = device::operand(grad);
    if (grad.dtype() == DType::kFloat16) own.update.flags |= device::kHalfGrad;
    if (grad.dtype() == DType::kBFloat16) own.update.flags |= device::kBfloat16Grad;
    const int32_t scale = scale_of_.empty() ? -1 : scale_of_[static_cast<size_t>(k)];
    own.scale = scale < 0 ? device::DeviceIn{} : device::operand(std::as_const(c).at(scale_, scale));
  }

  ab_kernel kernel_;
  In grad_, rate_, scale_;
  std::vector<int32_t> scale_of_;
  Out param_;
  std::vector<Out> states_;
  std::vector<In> reads_;
  std::vector<device::UpdateManyEntry> table_;
  std::vector<int64_t> starts_;  // running total of chunks before each, and in all
  device::Upload uploads_, starts_there_;
};

}  // namespace anabranch::optim
