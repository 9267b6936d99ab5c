#include "ops/optim/fused.h"

namespace anabranch::optim {
namespace {

// Every parameter's entries agree with each other, as those of one op of the rule do.
void infer_fused(InferContext& c, const OpDef& single) {
  const int count = c.n_in("Param");
  for (int k = 0; k < count; ++k) {
    const Meta &param = c.in("Param", k), &grad = c.in("Grad", k);
    const auto name = [&](const char* slot) { return c.op().input(slot).at(static_cast<size_t>(k)); };
    AB_CHECK(grad.kind == VarKind::kLoDTensor && compatible(param.shape, grad.shape) && param.dtype == grad.dtype,
             ShapeMismatch, "{}: Param {} is {} of {}, Grad {} is a {} {} of {}; they must be equal", single.type(),
             name("Param"), param.shape.str(), dtype_name(param.dtype), name("Grad"), var_kind_name(grad.kind),
             grad.shape.str(), dtype_name(grad.dtype));
    AB_CHECK(c.in("LearningRate", k).shape.numel() == 1, ShapeMismatch, "{}: LearningRate {} is {}, expected 1 element",
             single.type(), name("LearningRate"), c.in("LearningRate", k).shape.str());
    for (const SlotDef& slot : single.outputs()) {
      const std::string from = slot.name.substr(0, slot.name.size() - 3);
      const Meta& state = c.in(from, k);
      const bool scalar_state = state.shape.numel() == 1 && param.shape.numel() != 1;
      AB_CHECK(scalar_state || (compatible(state.shape, param.shape) && state.dtype == param.dtype), ShapeMismatch,
               "{}: {} {} is {}, Param {} is {}; they must be equal", single.type(), from, name(from.c_str()),
               state.shape.str(), name("Param"), param.shape.str());
      c.out(slot.name, k) = state;
    }
  }
}

}  // namespace

OpDef& declare_fused(OpDef& fused, const OpDef& single) {
  fused.doc("Many steps of " + single.type() + ", each as that op makes it, in one loop over all elements.");
  for (const SlotDef& slot : single.inputs()) {
    if (!slot.optional) fused.in_list(slot.name, slot.doc);
  }
  for (const SlotDef& slot : single.outputs()) fused.out_list(slot.name, slot.doc);
  for (const AttrDef& attr : single.attrs()) {
    std::visit([&](const auto& value) { fused.attr(attr.name, value, attr.doc); }, attr.value);
  }
  return fused.infer([&single](InferContext& c) { infer_fused(c, single); }).no_grad(kNoGrad);
}

}  // namespace anabranch::optim
