#include "ops/optim/update.h"

namespace anabranch::optim {
namespace {

void check_grad(const InferContext& c) {
  const Meta& grad = c.in("Grad");
  if (grad.kind == VarKind::kSelectedRows && !c.runtime()) return;  // only the height is known before the step
  check_same_shape(c, "Param", "Grad");
  check_same_dtype(c, "Grad", "Param");
}

}  // namespace

void infer_update(InferContext& c, const StateSlots& state) {
  check_grad(c);
  if (c.has_in("LearningRate")) check_numel(c, "LearningRate", 1);
  c.same_as("ParamOut", "Param");
  for (const auto& [in, out] : state) {
    check_same(c, in, "Param");
    c.same_as(out, in);
  }
}

std::function<void(OpDef&)> updates(StateSlots state, bool with_rate) {
  return [state = std::move(state), with_rate](OpDef& def) {
    def.in("Param", "[...] float").in("Grad", "like Param, dense or sparse").takes("Grad", Holds::kTensorOrRows);
    if (with_rate) def.in("LearningRate", "[1] float");
    def.out("ParamOut", "Param, updated in place").no_grad(kNoGrad);
    for (const auto& [in, out] : state) {
      def.in(in, "like Param").out(out, std::string(in) + ", updated in place");
      if (out != std::string(in) + "Out") def.updates(in, out);
    }
    def.infer([state](InferContext& c) { infer_update(c, state); });
  };
}

void check_rows(const SelectedRows& grad, const Shape& param) {
  AB_CHECK(grad.height == param[0] && grad.value.shape().rank() == param.rank() &&
               static_cast<int64_t>(grad.rows.size()) == grad.value.rows() &&
               grad.value.shape().slice(1, param.rank()) == param.slice(1, param.rank()),
           ShapeMismatch,
           "sparse gradient must have the height and row width of its parameter, got height {} with {} rows and values "
           "{} for parameter {}",
           grad.height, grad.rows.size(), grad.value.shape().str(), param.str());
  if (grad.rows.empty()) return;
  const auto [low, high] = std::minmax_element(grad.rows.begin(), grad.rows.end());
  AB_CHECK(*low >= 0 && *high < grad.height, InvalidArgument,
           "sparse gradient must name rows of its parameter, got {} to {} of {}", *low, *high, grad.height);
}

}  // namespace anabranch::optim
