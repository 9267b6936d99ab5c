#include "graph/passes/patterns/step_ops.h"

namespace anabranch {

StepOps::StepOps(const StepView& view) : view_(view) {
  for (size_t i = 0; i < view.ops.size(); ++i) {
    for (const auto& name : view.ops[i]->output_args()) {
      if (name != ir::kEmptyVar && !made_by_.emplace(name, static_cast<int>(i)).second) twice_ = name;
    }
  }
}

const ir::Op* StepOps::made(const std::string& name, const char* type) {
  const auto it = made_by_.find(name);
  if (it == made_by_.end() || view_.ops[static_cast<size_t>(it->second)]->type != type) return nullptr;
  met_.insert(it->second);
  return view_.ops[static_cast<size_t>(it->second)].get();
}

std::string StepOps::original(std::string name) {
  while (const ir::Op* copy = made(name, "rnn_memory_helper")) name = copy->input("X")[0];
  return name;
}

std::string StepOps::inside(const std::string& name, const char* type) {
  const ir::Op* op = made(name, type);
  return op ? sole(op->input("X")) : "";
}

std::optional<std::pair<std::string, std::string>> StepOps::operands(const std::string& name, const char* type) {
  const ir::Op* op = made(name, type);
  if (!op) return std::nullopt;
  return std::pair{sole(op->input("X")), sole(op->input("Y"))};
}

std::string StepOps::one_less(const std::string& name) {
  const ir::Op* op = made(name, "scale");
  if (!op || op->attr<float>("scale") != -1.0f || op->attr<float>("bias") != 1.0f) return "";
  return op->attr<bool>("bias_after_scale") && op->input("ScaleTensor").empty() ? sole(op->input("X")) : "";
}

const ir::Op* StepOps::left_over() const {
  for (size_t i = 0; i < view_.ops.size(); ++i) {
    if (!met_.count(static_cast<int>(i))) return view_.ops[i].get();
  }
  return nullptr;
}

bool is_last_axis(const ir::Op& op) {
  const auto axis = op.attr<int32_t>("axis");
  return axis == 1 || axis == -1;
}

}  // namespace anabranch
