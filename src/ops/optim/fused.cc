#include "ops/optim/fused.h"

namespace anabranch::optim {
namespace {

constexpr const char *kScale = "Scale", *kScaleOf = "scale_of";

const std::string& argument(const InferContext& c, std::string_view slot, int k) {
  return c.op().input(slot).at(static_cast<size_t>(k));
}

// One entry per parameter in each slot.
void check_counts(const InferContext& c) {
  const int count = c.n_in("Param");
  const auto check = [&](const std::vector<ir::Slot>& slots, const auto& entries) {
    for (const ir::Slot& slot : slots) {
      if (slot.name == kScale) continue;
      AB_CHECK(entries(slot.name) == count, InvalidArgument, "{} must have one entry for each of {} parameters, got {}",
               slot.name, count, entries(slot.name));
    }
  };
  check(c.op().inputs, [&](const std::string& s) { return c.n_in(s); });
  check(c.op().outputs, [&](const std::string& s) { return c.n_out(s); });
}

// Maps parameters to entries of Scale. Returns whether gradients are unscaled.
bool check_scales(const InferContext& c) {
  const auto& scale_of = c.attr<std::vector<int32_t>>(kScaleOf);
  const int scales = c.n_in(kScale), count = c.n_in("Param");
  AB_CHECK(scale_of.empty() ? scales == 0 : static_cast<int>(scale_of.size()) == count, InvalidArgument,
           "scale_of must have one entry for each of {} parameters, got {}, with {} of Scale", count, scale_of.size(),
           scales);
  for (const int32_t k : scale_of) {
    AB_CHECK(k >= -1 && k < scales, InvalidArgument, "scale_of must name one of {} entries of Scale or be -1, got {}",
             scales, k);
  }
  for (int k = 0; k < scales; ++k) {
    const Meta& scale = c.in(kScale, k);
    AB_CHECK(scale.kind == VarKind::kLoDTensor && scale.shape.numel() == 1 && scale.dtype == DType::kFloat32,
             ShapeMismatch, "Scale {} must have 1 element of float32, got a {} {} of {}", argument(c, kScale, k),
             var_kind_name(scale.kind), scale.shape.str(), dtype_name(scale.dtype));
  }
  return !scale_of.empty();
}

bool is_16_bits(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

void check_gradient(const InferContext& c, int k, bool as_they_come) {
  const Meta &param = c.in("Param", k), &grad = c.in("Grad", k);
  AB_CHECK(!as_they_come || param.dtype == DType::kFloat32, InvalidArgument,
           "Param {} must be float32 if scale_of is given, got {}", argument(c, "Param", k), dtype_name(param.dtype));
  AB_CHECK(param.kind == VarKind::kLoDTensor && grad.kind == VarKind::kLoDTensor &&
               compatible(param.shape, grad.shape) &&
               (param.dtype == grad.dtype || (as_they_come && is_16_bits(grad.dtype))),
           ShapeMismatch, "Param {} and Grad {} must have the same shape and dtype, got {} of {} and a {} {} of {}",
           argument(c, "Param", k), argument(c, "Grad", k), param.shape.str(), dtype_name(param.dtype),
           var_kind_name(grad.kind), grad.shape.str(), dtype_name(grad.dtype));
}

// The entries of each parameter must match, as in the single-parameter op.
void infer_fused(InferContext& c, const OpDef& single, const std::set<std::string>& numbers) {
  check_counts(c);
  const bool as_they_come = check_scales(c);
  const int count = c.n_in("Param");
  for (int k = 0; k < count; ++k) {
    const Meta& param = c.in("Param", k);
    const auto name = [&](const char* slot) { return argument(c, slot, k); };
    check_gradient(c, k, as_they_come);
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
            ShapeMismatch, "{} {} and Param {} must have the same shape and dtype, got a {} {} of {} and {} of {}",
            from, name(from.c_str()), name("Param"), var_kind_name(state.kind), state.shape.str(),
            dtype_name(state.dtype), param.shape.str(), dtype_name(param.dtype));
      }
      c.out(slot.name, k) = state;
    }
  }
}

}  // namespace

std::function<void(OpDef&)> fused_form_of(const OpDef& single, std::set<std::string> numbers) {
  return [&single, numbers = std::move(numbers)](OpDef& fused) {
    fused.doc("Applies " + single.type() + " to many parameters in one loop over all elements, with the same results.");
    for (const SlotDef& slot : single.inputs()) {
      if (!slot.optional) fused.in_list(slot.name, slot.doc);
    }
    for (const SlotDef& slot : single.outputs()) fused.out_list(slot.name, slot.doc);
    fused.in_optional_list(kScale, "[1] float32: divisors of the gradients, on devices only");
    fused.attr<std::vector<int32_t>>(
        kScaleOf, {},
        "for each parameter, the entry of Scale that divides its gradient, -1: none; if given, Grad may be a "
        "16-bit float with a float32 Param, on devices only");
    fused.attrs_of(single).effects(kEngineOnly).no_grad(kNoGrad);
    fused.infer([&single, numbers](InferContext& c) { infer_fused(c, single, numbers); });
  };
}

void check_plain_gradients(const KernelArgs& op) {
  const auto& scale_of = op.attr<std::vector<int32_t>>(kScaleOf);
  AB_CHECK(scale_of.empty(), Unsupported, "scale_of must be empty on the CPU, got {} entries", scale_of.size());
}

}  // namespace anabranch::optim
