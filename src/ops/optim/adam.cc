#include "ops/device/launch_update.h"
#include "ops/optim/fused.h"
#include "ops/optim/fused_on_device.h"

namespace anabranch::optim::adam_op {
namespace {

constexpr StateTable<2> kState = {{{"Moment1", "Moment1Out"}, {"Moment2", "Moment2Out"}}};

template <class T> using Rule = ByRule<rules::Adam, T>;

template <class T> Rule<T> rule_of(const KernelArgs& op) {
  return {{number<T>(op, "beta1"), number<T>(op, "beta2"), number<T>(op, "epsilon")}};
}

void infer_adam(InferContext& c) {
  infer_update(c, as_slots(kState));
  for (const char* slot : {"Beta1Pow", "Beta2Pow"}) {
    check_numel(c, slot, 1);
    c.same_as(std::string(slot) + "Out", slot);
  }
  for (const char* slot : {"Beta1Tensor", "Beta2Tensor"}) {
    if (c.has_in(slot)) check_numel(c, slot, 1);
  }
}

template <class T> void set_scalar(Tensor& t, T value) {
  if (t.dtype() == DType::kFloat64) {
    *t.mutable_data<double>() = static_cast<double>(value);
  } else {
    *t.mutable_data<float>() = static_cast<float>(value);
  }
}

constexpr auto adam_kernel = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [attrs = rule_of<T>(op), lazy = op.attr<bool>("lazy_mode"), param = op.in("Param"), grad = op.in("Grad"),
          rate = op.in("LearningRate"), m1 = op.in("Moment1"), m2 = op.in("Moment2"), pow1 = op.in("Beta1Pow"),
          pow2 = op.in("Beta2Pow"), beta1 = op.in("Beta1Tensor"), beta2 = op.in("Beta2Tensor"),
          param_out = op.out("ParamOut"), m1_out = op.out("Moment1Out"), m2_out = op.out("Moment2Out"),
          pow1_out = op.out("Beta1PowOut"), pow2_out = op.out("Beta2PowOut"),
          gradients = Gradients<T>()](KernelContext& c) mutable {
    Rule<T> by = attrs;
    rules::Adam<T>& rule = by.rule;
    if (beta1) rule.beta1 = scalar<T>(c[beta1]);
    if (beta2) rule.beta2 = scalar<T>(c[beta2]);
    const T p1 = scalar<T>(c[pow1]), p2 = scalar<T>(c[pow2]);
    // Fluid 1.8.5 advances the powers before a sparse step and after a dense one.
    const bool sparse = c.value(grad).template get<SelectedRows>() != nullptr, skips = skips_step(c.value(grad));
    const T lr =
        rules::corrected_rate(scalar<T>(c[rate]), sparse ? p1 * rule.beta1 : p1, sparse ? p2 * rule.beta2 : p2);
    T* p = updated<T>(c, param, param_out);
    T* first = updated<T>(c, m1, m1_out);
    T* second = updated<T>(c, m2, m2_out);
    gradients.read(c.value(grad), c[param]);
    gradients.update(c, lazy || skips ? Rows::kTouched : Rows::kAll, [=](int64_t i, int64_t n, const T* g) {
      by.step(p + i, {first + i, second + i}, g, lr, n);
    });
    set_scalar<T>(c[pow1_out], skips ? p1 : p1 * rule.beta1);
    set_scalar<T>(c[pow2_out], skips ? p2 : p2 * rule.beta2);
  };
};

template <class T> device::UpdateRule rule_on_device(const KernelArgs& op) {
  return {.name = "adam",
          .states = as_slots(kState),
          .reads = {"Beta1Pow", "Beta2Pow"},
          .numbers = {device::attribute<T>(op, "beta1"), device::attribute<T>(op, "beta2"),
                      device::attribute<T>(op, "epsilon")},
          .rows = op.attr<bool>("lazy_mode") ? Rows::kTouched : Rows::kAll};
}

constexpr auto adam_on_device = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  device::UpdateRule rule = rule_on_device<T>(op);
  rule.reads.insert(rule.reads.end(), {"Beta1Tensor", "Beta2Tensor"});
  return [update = device::Update<T>(op, rule), next = device::kernel_of<T>("next_powers"),
          pow1 = op.out("Beta1PowOut"), pow2 = op.out("Beta2PowOut")](const DeviceContext& c) {
    device::UpdateArgs a = update.launch(c);
    a.state[0] = device::operand(c[pow1]);
    a.state[1] = device::operand(c[pow2]);
    c.launch(next, a);
  };
};

template <class T> Kernel fused_adam(const KernelArgs& op) {
  const Rule<T> by = rule_of<T>(op);
  const In rate = op.in("LearningRate"), pow1 = op.in("Beta1Pow"), pow2 = op.in("Beta2Pow");
  const Out pow1_out = op.out("Beta1PowOut"), pow2_out = op.out("Beta2PowOut");
  const auto rate_of = [=](KernelContext& c, int k) {
    return rules::corrected_rate(scalar<T>(c.at(rate, k)), scalar<T>(c.at(pow1, k)), scalar<T>(c.at(pow2, k)));
  };
  return fused_update<T>(op, kState, by, rate_of, [=, rule = by.rule](KernelContext& c, int k) {
    set_scalar<T>(c.at(pow1_out, k), scalar<T>(c.at(pow1, k)) * rule.beta1);
    set_scalar<T>(c.at(pow2_out, k), scalar<T>(c.at(pow2, k)) * rule.beta2);
  });
}

template <class T> Kernel fused_on_device(const KernelArgs& op) {
  return [update = FusedOnDevice<T>(op, rule_on_device<T>(op), {"Beta1PowOut", "Beta2PowOut"}),
          next = device::kernel_of<T>("next_powers_many")](const DeviceContext& c) mutable {
    const device::UpdateManyArgs args = update.launch(c);
    c.launch(next, args);
  };
}

AB_OP(adam)
    .doc(
        "Moment1Out = beta1 Moment1 + (1 - beta1) Grad; Moment2Out = beta2 Moment2 + (1 - beta2) Grad^2; ParamOut = "
        "Param - r Moment1Out / (sqrt(Moment2Out) + epsilon) with r = LearningRate sqrt(1 - Beta2Pow) / (1 - "
        "Beta1Pow), by the next powers if Grad is sparse. Rows missing from a sparse Grad have a zero gradient, or "
        "with lazy_mode are not updated.")
    .source("Kingma & Ba, ICLR 2015, arXiv:1412.6980")
    .with(updates(as_slots(kState)))
    .with(rows_on_devices)
    .in("Beta1Pow", "[1]: beta1 to the power of the step")
    .in("Beta2Pow", "[1]: beta2 to the power of the step")
    .in_optional("Beta1Tensor", "[1], instead of the attribute beta1")
    .in_optional("Beta2Tensor", "[1], instead of the attribute beta2")
    .out("Beta1PowOut", "Beta1Pow * beta1")
    .out("Beta2PowOut", "Beta2Pow * beta2")
    .attr<float>("beta1", 0.9f, "decay of the first moment")
    .attr<float>("beta2", 0.999f, "decay of the second moment")
    .attr<float>("epsilon", 1.0e-8f, "keeps the quotient finite")
    .attr<bool>("lazy_mode", false, "a sparse gradient updates only its rows")
    .ignores("min_row_size_to_use_multithread", int64_t{1000})
    .infer(infer_adam)
    .cpu<float, double>(adam_kernel)
    .device<float, double>(adam_on_device);

AB_OP(fused_adam)
    .with(fused_form_of(ab_op_adam, {"Beta1Pow", "Beta2Pow"}))
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel { return fused_adam<T>(op); })
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel { return fused_on_device<T>(op); });

}  // namespace
}  // namespace anabranch::optim::adam_op
