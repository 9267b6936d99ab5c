#include "ops/declare/second_of_files.h"

#include <algorithm>

#include "opdef/append_op.h"

namespace anabranch::second_order {
namespace {

// Names for variables that have none in the program.
std::string flow_into(const std::string& slot) { return "@FLOW@" + slot; }
std::string marked(const std::string& name) { return ir::grad_name(name) + kGradientMark; }

}  // namespace

OfFile::OfFile(ir::Block& block, size_t at) : block_(block), at_(at), op_(*block.ops()[at]) {
  const auto flows = [](const ir::Slot& slot) { return slot.name.starts_with("DD") && !slot.args.empty(); };
  AB_CHECK(std::any_of(op_.inputs.begin(), op_.inputs.end(), flows) && !op_.output_args().empty(), InvalidArgument,
           "op {} must have an input whose name starts with DD, and an output", op_.type);
}

std::string OfFile::one_of(const std::vector<std::string>& args) const {
  AB_CHECK(args.size() < 2, InvalidArgument, "op {} must have one argument in a slot, got {}", op_.type, args.size());
  return args.empty() || args[0] == ir::kEmptyVar ? std::string() : args[0];
}

std::string OfFile::fresh() {
  for (int number = 0;; ++number) {
    std::string name = fmt::format("{}@PART@{}", op_.output_args().at(0), number);
    if (!block_.find_var_recursive(name) && taken_.insert(name).second) return name;
  }
}

std::string OfFile::gradient_of(const std::string& slot) const {
  const std::string name = out("D" + slot);
  return name.empty() ? out(ir::grad_name(slot)) : name;
}

std::string OfFile::make(const std::string& type, std::vector<ir::Slot> ins, const std::string& slot) {
  auto op = std::make_shared<ir::Op>();
  op->type = type;
  op->inputs = std::move(ins);
  for (const auto& [name, value] : op_.attrs) {
    if (find_op(type).find_attr(name)) op->attrs[name] = value;
  }
  const std::string made = fresh();
  op->set_output(slot, {made});
  ops_.push_back(std::move(op));
  return made;
}

std::string OfFile::scale(const std::string& x, float factor) {
  const std::string made = make("scale", {{"X", {x}}});
  ops_.back()->attrs["scale"] = factor;
  return made;
}

void OfFile::is(const std::string& slot, const std::string& made) {
  if (const std::string name = out(slot); !name.empty()) parts_[name].push_back(made);
}

// The gradient op as it was in the program. The file omits the inputs that its gradient does not read; if their shape
// is needed, that of Out@GRAD is used.
ir::Op OfFile::first_op(const OpDef& forward, const std::string& first) {
  const GradReads& reads = forward.grad_reads();
  const std::string dout = in("D" + reads.from.at(0));
  ir::Op op;
  op.type = first;
  op.attrs = op_.attrs;
  op.made_at = op_.made_at;
  std::set<std::string> seen;
  for (const auto& slot : reads.ins) {
    std::string name = in(slot);
    // A variable in two slots has two gradients.
    if (!name.empty() && !seen.insert(name).second) name = make("assign", {{"X", {name}}});
    if (name.empty() && !forward.find_input(slot)->optional) name = dout;
    if (!name.empty()) op.set_input(slot, {name});
  }
  for (const auto& slot : reads.outs) {
    if (const std::string name = in(slot); !name.empty()) op.set_input(slot, {name});
  }
  op.set_input(ir::grad_name(reads.from[0]), {dout.empty() ? flow_into(reads.from[0]) : dout});
  for (const auto& slot : reads.to) {
    op.set_output(ir::grad_name(slot), {in("DD" + slot).empty() ? ir::kEmptyVar : flow_into(slot)});
  }
  return op;
}

void OfFile::find_targets(const ir::Op& first, const GradReads& reads) {
  const auto add = [&](const std::string& slot, const std::string& target) {
    if (target.empty() || first.input(slot).empty()) return;
    targets_[marked(first.input(slot)[0])] = target;
    like_[target] = first.input(slot)[0];
    parts_[target];
  };
  for (const auto& slot : reads.ins) add(slot, in(slot).empty() ? "" : gradient_of(slot));
  add(ir::grad_name(reads.from[0]), out("DD" + reads.from[0]));
}

void OfFile::differentiate(const std::string& first) {
  const OpDef& forward = *find_op(first).forward();
  const GradReads& reads = forward.grad_reads();
  for (const auto& slot : reads.to) flows_[marked(flow_into(slot))] = in("DD" + slot);
  const ir::Op op = first_op(forward, first);
  find_targets(op, reads);
  GradContext context(op, block_, [this](const std::string& name) { return targets_.count(marked(name)) != 0; });
  find_op(first).run_grad(context);
  for (const auto& made : context.ops) take(made);
}

// An op made by the gradient function: renames gradients to variables of the program.
void OfFile::take(const ir::OpRef& op) {
  for (auto& slot : op->inputs) {
    for (auto& arg : slot.args) {
      if (const auto flow = flows_.find(arg); flow != flows_.end()) arg = flow->second;
    }
  }
  for (auto& slot : op->outputs) {
    for (auto& arg : slot.args) {
      if (!arg.ends_with(kGradientMark)) continue;
      const auto target = targets_.find(arg);
      arg = target == targets_.end() ? ir::kEmptyVar : fresh();
      if (target != targets_.end()) parts_[target->second].push_back(arg);
    }
  }
  if (!op->output_args().empty()) ops_.push_back(op);
}

// Sums the parts of an output; an output without parts is zero.
void OfFile::add_up() {
  for (const auto& [name, parts] : parts_) {
    if (parts.size() == 1) {
      for (const auto& op : ops_) {
        op->rename_input(parts[0], name);
        op->rename_output(parts[0], name);
      }
      continue;
    }
    const std::string whole =
        parts.empty() ? make("fill_zeros_like", {{"X", {like_.at(name)}}}) : make("sum", {{"X", parts}});
    ops_.back()->rename_output(whole, name);
  }
}

void OfFile::append(const ir::Op& op, size_t at) {
  OpSpec spec{op.type, op.inputs, op.outputs, op.attrs};
  for (const char* name : {"op_role", "op_namescope", "op_device"}) {
    if (op_.has_attr(name)) spec.attrs[name] = op_.attrs.at(name);
  }
  std::vector<std::string> gradients;  // gradients of parameters
  const auto outs = op.output_args();
  for (const auto& [parameter, gradient] : op_.role_vars()) {
    if (std::find(outs.begin(), outs.end(), gradient) != outs.end()) {
      gradients.insert(gradients.end(), {parameter, gradient});
    }
  }
  spec.attrs["op_role_var"] = gradients;
  append_op(block_, std::move(spec), at)->made_at = op_.made_at;
}

size_t OfFile::put() {
  add_up();
  size_t at = at_ + 1;
  for (const auto& op : ops_) append(*op, at++);
  block_.remove_ops(at_, at_ + 1);
  return ops_.size();
}

}  // namespace anabranch::second_order
