// Partial gradients: their names and sums.
#include <algorithm>

#include "autodiff/backward_op.h"
#include "autodiff/block_gradients.h"
#include "autodiff/names.h"
#include "opdef/op_def.h"

namespace anabranch {

// The gradient ops of one forward op. Reads first: partial gradients are summed before their first reader. Then the
// outputs get their names. The gradient of an op that worked in place is the next version of the gradient it reads, not
// another term.
void BlockGradients::emit(const std::vector<ir::OpRef>& ops) {
  std::set<std::string> read;
  for (const auto& op : ops) {
    for (auto& slot : op->inputs) {
      for (auto& arg : slot.args) {
        auto it = partials_.find(arg);
        if (it == partials_.end()) continue;
        read.insert(arg);
        join_partials(arg);
        arg = it->second.names[0];
      }
    }
  }
  std::set<std::string> replaced;
  for (const auto& op : ops) {
    const auto outputs = take_outputs(*op);
    ops_.push_back(op);
    for (const auto& [arg, gradient] : outputs) {
      if (read.count(gradient) && replaced.insert(gradient).second) {
        partials_.erase(gradient);
        outside_.erase(gradient);
      }
      if (adds_to_array(*op, gradient)) {
        *arg = partials_.at(gradient).names[0];
        continue;
      }
      // An output that a later one of the ops still reads keeps its name.
      produce(gradient, arg, ops.size() > 1 && replaced.count(gradient) != 0);
    }
  }
}

// Outputs that are gradients, by slot, with the variables they belong to. They stay empty until they are named, so that
// renaming the first term does not affect the second one of the same op.
std::vector<std::pair<std::string*, std::string>> BlockGradients::take_outputs(ir::Op& op) {
  std::vector<ir::Slot*> slots;
  for (auto& slot : op.outputs) slots.push_back(&slot);
  std::stable_sort(slots.begin(), slots.end(), [](auto* a, auto* b) { return a->name < b->name; });
  std::vector<std::pair<std::string*, std::string>> outputs;
  for (ir::Slot* slot : slots) {
    for (auto& arg : slot->args) {
      if (arg == ir::kEmptyVar || !is_gradient(arg)) continue;
      outputs.emplace_back(&arg, std::move(arg));
      arg.clear();
    }
  }
  return outputs;
}

void BlockGradients::join_partials(const std::string& gradient) {
  auto it = partials_.find(gradient);
  if (it == partials_.end() || it->second.names.size() < 2) return;
  if (auto& names = it->second.names; sums_.count(gradient)) {
    ops_.push_back(backward_op("add_to_sum", {{"X", {names.begin() + 1, names.end()}}}, {{"Out", {gradient}}}));
    names.resize(1);
    return;
  }
  // A gradient that existed before has the name that the sum would get.
  const std::string sum = outside_.count(gradient) ? part_name(gradient) : gradient;
  ops_.push_back(backward_op("sum", {{"X", it->second.names}}, {{"Out", {sum}}}));
  it->second.names = {sum};
}

std::string BlockGradients::part_name(const std::string& gradient) {
  const std::string name =
      fmt::format("{}@RENAME@block{}@{}{}", plain(gradient), forward_.idx(), rename_count_[gradient]++, kGradientMark);
  auto var = forward_var_.find(gradient);
  if (var != forward_var_.end()) forward_var_[name] = var->second;
  return name;
}

void BlockGradients::produce(const std::string& gradient, std::string* arg, bool name_taken) {
  auto& parts = partials_[gradient];
  if (parts.names.empty()) {
    parts.since = ops_.size() - 1;
    order_.push_back(gradient);
    *arg = name_taken ? part_name(gradient) : gradient;
  } else {
    const bool stays = outside_.count(gradient) || sums_.count(gradient);
    if (parts.names.size() == 1 && parts.names[0] == gradient && !stays) {
      parts.names[0] = part_name(gradient);
      rename(gradient, parts.names[0], parts.since);
    }
    *arg = part_name(gradient);
  }
  parts.names.push_back(*arg);
}

// `first_op` writes the name; if it reads the name, too, it reads an older gradient.
void BlockGradients::rename(const std::string& from, const std::string& to, size_t first_op) {
  for (size_t i = first_op; i < ops_.size(); ++i) ops_[i]->rename_output(from, to);
  rename_reads(from, to, first_op + 1);
}

void BlockGradients::rename_reads(const std::string& from, const std::string& to, size_t first_op) {
  for (size_t i = first_op; i < ops_.size(); ++i) ops_[i]->rename_input(from, to);
}

// An op that adds to elements of an array contributes no separate term: it changes the array's gradient in place.
bool BlockGradients::adds_to_array(const ir::Op& op, const std::string& gradient) const {
  if (!find_op(op.type).has(kKeepsOutputs) || !op.sub_blocks().empty() || !partials_.count(gradient)) return false;
  const auto var = forward_var_.find(gradient);
  const ir::VarRef of = var == forward_var_.end() ? nullptr : forward_.find_var_recursive(var->second);
  return of && of->kind == VarKind::kLoDTensorArray;
}

// The op that runs a gradient block finds the gradients by their plain names.
void BlockGradients::settle_names() {
  for (const auto& gradient : std::set<std::string>(order_.begin(), order_.end())) {
    const auto it = partials_.find(gradient);
    if (it == partials_.end() || it->second.names[0] == gradient) continue;
    ops_.push_back(backward_op("assign", {{"X", {it->second.names[0]}}}, {{"Out", {gradient}}}));
    it->second.names = {gradient};
  }
}

// An op that overwrites a variable ends the lifetime of its gradient: earlier ops computed another version of the
// variable. An op that works in place does so if it passes no gradient on. Ops with sub-blocks may not have run, and
// arrays are written in part: those do not end it.
void BlockGradients::finish_versions(const ir::Op& op, bool passes_on) {
  if (!op.sub_blocks().empty()) return;
  const auto ins = op.input_args();
  for (const auto& out : op.output_args()) {
    const std::string gradient = gradient_name(out);
    auto it = partials_.find(gradient);
    const bool in_place = std::find(ins.begin(), ins.end(), out) != ins.end();
    if (it == partials_.end() || (in_place && passes_on)) continue;
    const ir::VarRef var = forward_.find_var_recursive(out);
    if (var && (var->kind != VarKind::kLoDTensor || var->persistable)) continue;
    join_partials(gradient);
    finished_.emplace(gradient, it->second.names[0]);
    partials_.erase(it);
    outside_.erase(gradient);
  }
}

}  // namespace anabranch
