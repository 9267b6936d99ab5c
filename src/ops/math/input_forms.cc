#include "ops/math/input_forms.h"

namespace anabranch::math {

InputForms::InputForms(const TileProgram& program)
    : outs_(program.outs().size()),
      uses_(static_cast<size_t>(program.inputs())),
      forms_(static_cast<size_t>(program.inputs())) {
  for (const TileStep& step : program.steps()) {
    for (size_t a = 0; a < step.args.size(); ++a) note(step, a);
  }
}

void InputForms::note(const TileStep& step, size_t arg) {
  const auto input = static_cast<size_t>(step.args[arg]);
  if (input >= uses_.size()) return;
  Use& use = uses_[input];
  use.whole_only |= !step.may_spread(arg) || (use.used && use.axis != step.axis);
  use.axis = step.axis;
  use.used = true;
}

// If every first operand has the shape of the results, all results have one shape: see note().
bool InputForms::lay(const KernelContext& c) {
  const Shape& whole = c.outs[0]->tensor().shape();
  smaller_ = 0;
  for (size_t k = 1; k < outs_; ++k) {
    if (!(c.outs[k]->tensor().shape() == whole)) return false;
  }
  for (size_t i = 0; i < forms_.size(); ++i) {
    const Shape& shape = c.ins[i]->tensor().shape();
    Form& form = forms_[i];
    form.smaller = !(shape == whole);
    if (!form.smaller) continue;
    if (uses_[i].whole_only) return false;
    form.spread = spread_of(whole, shape, uses_[i].axis);
    if (form.spread.period == 0) return false;
    ++smaller_;
  }
  return true;
}

}  // namespace anabranch::math
