#include "opdef/work_context.h"

#include <algorithm>

#include "opdef/op_def.h"

namespace anabranch {

const Tensor* tensor_in(const Value* v) {
  if (!v) return nullptr;
  if (const auto* rows = v->get<SelectedRows>()) return &rows->value;
  const Tensor* t = v->get<Tensor>();
  return t && t->initialized() ? t : nullptr;
}

double elems_of(const Tensor* t) { return t ? static_cast<double>(t->numel()) : 0; }

bool WorkContext::gradient() const { return def_.forward() != nullptr; }

const Tensor* WorkContext::find(const std::vector<ir::Slot>& slots, std::span<Value* const> values,
                                std::string_view slot) {
  size_t at = 0;
  for (const ir::Slot& s : slots) {
    if (s.name == slot) return s.args.empty() || at >= values.size() ? nullptr : tensor_in(values[at]);
    at += s.args.size();
  }
  return nullptr;
}

const Tensor* WorkContext::out(std::string_view slot) const {
  if (!gradient()) return find(op_.outputs, outs_, slot);
  const Tensor* t = in(ir::grad_name(std::string(slot)));
  return t ? t : in(slot);
}

double WorkContext::elems_in(std::string_view slot) const {
  double all = 0;
  size_t at = 0;
  for (const ir::Slot& s : op_.inputs) {
    for (size_t k = 0; k < s.args.size(); ++k, ++at) {
      if (s.name == slot && at < ins_.size()) all += elems_of(tensor_in(ins_[at]));
    }
  }
  return all;
}

int WorkContext::times(std::initializer_list<std::string_view> inputs) const {
  if (!gradient()) return 1;
  return static_cast<int>(std::count_if(inputs.begin(), inputs.end(), [&](std::string_view slot) {
    return find(op_.outputs, outs_, ir::grad_name(std::string(slot))) != nullptr;
  }));
}

}  // namespace anabranch
