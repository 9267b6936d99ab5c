#include "ops/optim/fused.h"

namespace anabranch::optim {
namespace {

// One entry of each slot for each parameter.
void check_counts(const InferContext& c) {
  const int count = c.n_in("Param");
  const auto check = [&](const std::vector<ir::Slot>& slots, const auto& entries) {
    for (const ir::Slot& slot : slots) {
      AB_CHECK(entries(slot.name) == count, InvalidArgument, "{} must have one entry for each of {} parameters, got {}",
               slot.name, count, entries(slot.name));
    }
  };
  check(c.op().inputs, [&](const std::string& s) { return c.n_in(s); });
  check(c.op().outputs, [&](const std::string& s) { return c.n_out(s); });
}

// Every parameter's entries agree with each other, as those of one op of the rule do.
void infer_fused(InferContext& c, const OpDef& single, const std::set<std::string>& numbers) {
  check_counts(c);
  const int count = c.n_in("Param");
  for (int k = 0; k < count; ++k) {
    const Meta &param = c.in("Param", k), &grad = c.in("Grad", k);
    const auto name = [&](const char* slot) { return c.op().input(slot).at(static_cast<size_t>(k)); };
    AB_CHECK(param.kind == VarKind::kLoDTensor && grad.kind == VarKind::kLoDTensor &&
                 compatible(param.shape, grad.shape) && param.dtype == grad.dtype,
             ShapeMismatch, "Param {} and Grad {} must have one shape and dtype, got {} of {} and a {} {} of {}",
             name("Param"), name("Grad"), param.shape.str(), dtype_name(param.dtype), var_kind_name(grad.kind),
             grad.shape.str(), dtype_name(grad.dtype));
    AB_CHECK(c.in("LearningRate", k).shape.numel() == 1, ShapeMismatch, "LearningRate {} must have 1 element, got {}",
             name("LearningRate"), c.in("LearningRate", k).shape.str());
    for (const SlotDef& slot : single.outputs()) {
      const std::string from = slot.name.substr(0, slot.name.size() - 3);
      const Meta& state = c.in(from, k);
      if (numbers.count(from)) {
        AB_CHECK(state.kind == VarKind::kLoDTensor && state.shape.numel() == 1, ShapeMismatch,
                 "{} {} must have 1 element, got a {} {}", from, name(from.c_str()), var_kind_name(state.kind),
                 state.shape.str());
      } else {
        AB_CHECK(
            state.kind == VarKind::kLoDTensor && compatible(state.shape, param.shape) && state.dtype == param.dtype,
            ShapeMismatch, "{} {} and Param {} must have one shape and dtype, got a {} {} of {} and {} of {}", from,
            name(from.c_str()), name("Param"), var_kind_name(state.kind), state.shape.str(), dtype_name(state.dtype),
            param.shape.str(), dtype_name(param.dtype));
      }
      c.out(slot.name, k) = state;
    }
  }
}

}  // namespace

std::function<void(OpDef&)> fused_form_of(const OpDef& single, std::set<std::string> numbers) {
  return [&single, numbers = std::move(numbers)](OpDef& fused) {
    fused.doc("Many steps of " + single.type() + ", each as that op makes it, in one loop over all elements.");
    for (const SlotDef& slot : single.inputs()) {
      if (!slot.optional) fused.in_list(slot.name, slot.doc);
    }
    for (const SlotDef& slot : single.outputs()) fused.out_list(slot.name, slot.doc);
    fused.attrs_of(single).effects(kEngineOnly).no_grad(kNoGrad);
    fused.infer([&single, numbers](InferContext& c) { infer_fused(c, single, numbers); });
  };
}

}  // namespace anabranch::optim
