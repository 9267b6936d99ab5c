#include "autodiff/block_gradients.h"

#include <algorithm>

#include "autodiff/backward_op.h"
#include "autodiff/names.h"
#include "ir/outer_names.h"
#include "ir/versions.h"
#include "opdef/op_def.h"
#include "opdef/whole_arrays.h"

namespace anabranch {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool any_in(const std::vector<std::string>& names, const std::set<std::string>& set) {
  return std::any_of(names.begin(), names.end(), [&](const auto& n) { return set.count(n) != 0; });
}

// If a slot has a single variable whose gradient is not requested, Fluid leaves the slot empty; in lists it keeps the
// position with kEmptyVar.
void tidy_outputs(ir::Op& op) {
  for (auto& slot : op.outputs) {
    if (slot.args.size() == 1 && slot.args[0] == ir::kEmptyVar) slot.args.clear();
  }
}

void set_roles(ir::Op& op) {
  op.attrs.erase(ir::kReadVersions);
  op.attrs.erase(ir::kDrawNumber);
  op.attrs["op_role"] = int32_t{ir::role::kBackward};
  if (op.has_attr("op_role_var")) op.attrs["op_role_var"] = std::vector<std::string>{};
}

// Attributes of an op whose block has memories: the memory variables, their sources, and the input slot with their
// initial values.
constexpr const char *kMemories = "ex_states", *kMemoriesMadeBy = "states", *kMemoriesBegunBy = "initial_states";

// Memories of a block, named by attributes of its op: variables that hold what another variable of the block held at
// the end of the previous iteration, and what an input of the op holds in the first one.
struct Memories {
  std::map<std::string, std::string> made_by;  // memory -> the variable of the previous iteration
  std::vector<std::string> names;              // in the order of the inputs that initialize them
};

Memories memories_of(const ir::Op& op) {
  using Names = std::vector<std::string>;
  Memories found;
  if (!op.has_attr(kMemories) || !op.has_attr(kMemoriesMadeBy)) return found;
  const auto &memories = op.attr<Names>(kMemories), &made_by = op.attr<Names>(kMemoriesMadeBy);
  for (size_t i = 0; i < memories.size() && i < made_by.size(); ++i) found.made_by.emplace(memories[i], made_by[i]);
  found.names = memories;
  return found;
}

}  // namespace

bool BlockGradients::needs(const std::string& name) const {
  if (request_.no_grad.count(name)) return false;
  const ir::VarRef var = forward_.find_var_recursive(name);
  if (!var || var->stop_gradient || (var->is_parameter && !var->trainable)) return false;
  const bool holds_elements =
      var->kind == VarKind::kLoDTensor || var->kind == VarKind::kSelectedRows || var->kind == VarKind::kLoDTensorArray;
  return !holds_elements || dtype_is_float(var->dtype);
}

void BlockGradients::seed(const std::string& target, const std::string& name, ir::OpRef op) {
  const std::string gradient = gradient_name(target);
  auto& parts = partials_[gradient];
  if (parts.names.empty()) order_.push_back(gradient);
  const std::string made = op && name == plain(gradient) ? gradient : name;
  if (op) {
    op->rename_output(name, made);
    starts_.insert(op.get());
    ops_.push_back(std::move(op));
  } else {
    outside_.insert(made);
  }
  parts.names.push_back(made);
  forward_var_[made] = target;
}

std::string BlockGradients::gradient_of(const std::string& var) const {
  const std::string gradient = gradient_name(var);
  auto done = finished_.find(gradient);
  if (done != finished_.end()) return plain(done->second);
  auto it = partials_.find(gradient);
  return it == partials_.end() ? "" : plain(it->second.names[0]);
}

BlockGradients::Path BlockGradients::find_path(size_t end, const std::set<std::string>& targets,
                                               const std::set<std::string>& inputs,
                                               std::set<std::string>* all_needed) const {
  const auto& ops = forward_.ops();
  std::vector<char> relevant(end, 1);
  if (!inputs.empty()) {
    std::set<std::string> reached = inputs;
    for (size_t i = 0; i < end; ++i) {
      relevant[i] = any_in(ops[i]->input_args(), reached);
      if (!relevant[i]) continue;
      for (const auto& out : ops[i]->output_args()) {
        if (needs(out)) reached.insert(out);
      }
    }
  }
  Path path;
  std::set<std::string> needed = targets;
  OuterNamesOf outer_names(forward_.program());
  for (size_t i = end; i-- > 0;) {
    if (!relevant[i] || !any_in(ops[i]->output_args(), needed)) continue;
    path.push_back(i);
    for (const auto& in : ops[i]->input_args()) {
      if (needs(in)) needed.insert(in);
    }
    // A block may write a variable only sometimes, or in part: then it reads the earlier value.
    for (const int sub : ops[i]->sub_blocks()) {
      const auto& reads = outer_names.of(sub).reads;
      for (const auto& out : ops[i]->output_args()) {
        if (reads.count(out) && needs(out)) needed.insert(out);
      }
    }
  }
  if (all_needed) *all_needed = std::move(needed);
  return path;
}

// An op whose block writes a variable of an outer block without listing it as an output passes on no gradient of it: an
// op of the path must not use such a variable.
void BlockGradients::refuse_hidden_writes(const Path& path, size_t end, const std::set<std::string>& targets) const {
  OuterNamesOf outer_names(forward_.program());
  for (size_t i = 0; i < end; ++i) {
    const ir::Op& op = *forward_.ops()[i];
    const auto outs = op.output_args();
    for (const int sub : op.sub_blocks()) {
      for (const auto& name : outer_names.of(sub).writes) {
        if (contains(outs, name) || !needs(name)) continue;
        const bool met = targets.count(name) || std::any_of(path.begin(), path.end(), [&](size_t k) {
                           return contains(forward_.ops()[k]->input_args(), name) ||
                                  contains(forward_.ops()[k]->output_args(), name);
                         });
        AB_CHECK(!met, Unsupported,
                 "{}: gradients do not flow through {}, a variable outside of the block that the block writes and the "
                 "op does not list as an output; pass it on as a memory or an output, or set its stop_gradient",
                 op.describe(static_cast<int>(i), forward_.idx()), name);
      }
    }
  }
}

void BlockGradients::run(size_t end, const std::set<std::string>& targets, const std::set<std::string>& inputs) {
  const Path path = find_path(end, targets, inputs);
  refuse_hidden_writes(path, end, targets);
  auto next = path.begin();
  for (size_t i = end; i-- > 0;) {
    const ir::Op& op = *forward_.ops()[i];
    const bool on_path = next != path.end() && *next == i;
    if (on_path) {
      ++next;
      try {
        differentiate(i);
      } catch (Error& e) {
        throw e.with_op(op.describe(static_cast<int>(i), forward_.idx())).with_while("differentiating");
      }
    }
    finish_versions(op, on_path && find_op(op.type).has_grad());
  }
  for (const auto& gradient : order_) join_partials(gradient);
  drop_empty_sums();
  if (forward_.idx() > 0) settle_names();
}

// Gradients of gradient ops omit arguments without incoming gradients.
ir::Op BlockGradients::without_unreached(const ir::Op& op) const {
  ir::Op seen = op;
  for (auto& slot : seen.outputs) {
    for (auto& arg : slot.args) {
      if (!partials_.count(gradient_name(arg))) arg = ir::kEmptyVar;
    }
  }
  return seen;
}

void BlockGradients::differentiate(size_t index) {
  const ir::Op& op = *forward_.ops()[index];
  const auto outs = op.output_args();
  const bool reached =
      std::any_of(outs.begin(), outs.end(), [&](const auto& out) { return partials_.count(gradient_name(out)) != 0; });
  const OpDef& def = find_op(op.type);
  if (!reached) return;
  if (!def.has_grad()) {
    const auto ins = op.input_args();
    const bool asked = std::any_of(ins.begin(), ins.end(), [&](const auto& in) { return needs(in); });
    AB_CHECK(!(asked && def.forward()), Unsupported,
             "{}: {} has no second-order gradient here; stop it with no_grad_set or stop_gradient", op.type,
             def.forward()->type());
    return;
  }
  const ir::Op seen = def.forward() ? without_unreached(op) : op;
  GradContext context(seen, forward_, [this](const std::string& name) { return needs(name); });
  def.run_grad(context);
  for (const auto& in : op.input_args()) forward_var_.emplace(gradient_name(in), in);
  std::vector<ir::OpRef> needed;
  for (const auto& grad : context.ops) {
    set_roles(*grad);
    tidy_outputs(*grad);
    if (grad->output_args().empty() || !fill_missing(index, *grad)) continue;
    add_sub_block(index, *grad);
    if (grad->output_args().empty()) continue;
    reads_.note(index, *grad);
    needed.push_back(grad);
  }
  emit(needed);
}

// Fills gradients that the op reads and no op computes with zeros; an op with a block makes its own zeros. False: the
// op reads gradients, and none of them exists.
bool BlockGradients::fill_missing(size_t index, ir::Op& grad) {
  const ir::Op& forward = *forward_.ops()[index];
  std::map<std::string, std::string> missing;
  bool found = false;
  const auto ins = grad.input_args();
  for (const auto& out : forward.output_args()) {
    const std::string gradient = gradient_name(out);
    if (!contains(ins, gradient)) continue;
    if (partials_.count(gradient)) {
      found = true;
    } else {
      missing.emplace(gradient, out);
    }
  }
  if (missing.empty()) return true;
  if (!found) return false;
  if (!grad.sub_blocks().empty()) {
    for (auto& slot : grad.inputs) {
      for (auto& arg : slot.args) {
        if (missing.count(arg)) arg = ir::kEmptyVar;
      }
    }
    return true;
  }
  for (const auto& gradient : ins) {
    auto it = missing.find(gradient);
    if (it == missing.end()) continue;
    forward_var_[gradient] = it->second;
    const ir::OpRef zeros = backward_op("fill_zeros_like", {{"X", {it->second + kWrittenMark}}}, {{"Out", {gradient}}});
    reads_.note(index, *zeros);
    emit({zeros});
    missing.erase(it);
  }
  return true;
}

// A variable of the gradient block holds the gradient of the target at the start of an iteration: the op puts it there.
void BlockGradients::submit(const std::string& target) {
  seed(target, gradient_name(target), nullptr);
  submitted_.insert(target);
}

// A value that one iteration passes to the next is also a target if a target depends on it.
std::set<std::string> BlockGradients::close_over_iterations(
    const std::map<std::string, std::string>& made_by_previous_iteration, std::set<std::string> targets) const {
  for (size_t known = 0; known != targets.size();) {
    known = targets.size();
    std::set<std::string> needed;
    find_path(forward_.ops().size(), targets, {}, &needed);
    for (const auto& name : needed) {
      const auto it = made_by_previous_iteration.find(name);
      if (it != made_by_previous_iteration.end()) targets.insert(it->second);
    }
  }
  return targets;
}

// Whether a variable may hold a value before the op.
bool BlockGradients::had_value(size_t index, const std::string& name) const {
  const ir::VarRef var = forward_.find_var(name);
  if (!var || var->persistable || var->is_data) return true;
  const auto& ops = forward_.ops();
  return std::any_of(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(index),
                     [&](const ir::OpRef& op) { return contains(op->output_args(), name); });
}

// Arrays that the op of the block reads and whose gradients other ops compute than those that add to elements.
std::vector<std::string> BlockGradients::whole_arrays(const ir::Op& op, const std::set<std::string>& targets) const {
  std::vector<std::string> found;
  for (const auto& name : op.input_args()) {
    const ir::VarRef var = forward_.find_var_recursive(name);
    if (!var || var->kind != VarKind::kLoDTensorArray || contains(found, name)) continue;
    if (targets.count(name) || sums_.count(gradient_name(name))) continue;
    const bool whole = std::any_of(ops_.begin(), ops_.end(), [&](const ir::OpRef& made_by) {
      const bool adds = find_op(made_by->type).has(kKeepsOutputs) && made_by->sub_blocks().empty();
      return !adds && contains(made_by->output_args(), gradient_name(name));
    });
    if (whole) found.push_back(name);
  }
  return found;
}

// A gradient op that was given the forward op's sub-block gets that block's gradient block instead. Inside it, the
// gradients of outer variables have their plain names x@GRAD and are local. For a variable that the block writes,
// x@GRAD holds the gradient of the iteration's final value before the ops of the gradient block, and the gradient of
// its initial value after them: the op carries it from iteration to iteration.
void BlockGradients::add_sub_block(size_t index, ir::Op& grad) {
  const ir::Op& forward = *forward_.ops()[index];
  const auto subs = forward.sub_blocks();
  if (subs.size() != 1 || grad.sub_blocks() != subs) return;
  const ir::Block& body = forward_.program().block(subs[0]);
  auto inner = std::unique_ptr<BlockGradients>(
      new BlockGradients(body, request_, {body, reads_.seen_by_block_of(index), reads_.passing_for_block_of(index)}));
  std::set<std::string> targets;
  const Memories memories = memories_of(forward);
  std::map<std::string, std::string> made_by_previous_iteration = memories.made_by;
  for (const auto& out : forward.output_args()) {
    const std::string gradient = gradient_name(out);
    join_partials(gradient);
    if (partials_.count(gradient)) targets.insert(out);
    if (!body.find_var(out)) made_by_previous_iteration.emplace(out, out);
  }
  if (find_op(forward.type).has(kRepeats)) {
    targets = inner->close_over_iterations(made_by_previous_iteration, std::move(targets));
  }
  for (const auto& target : targets) inner->submit(target);
  submit_sums(index, *inner);
  inner->run(body.ops().size(), targets, {});
  std::set<std::string> given;    // a variable may be listed twice; its gradient flows once
  std::vector<std::string> ends;  // the gradient of the iteration's initial value is zero
  for (const auto& target : targets) {
    if (!inner->partials_.count(gradient_name(target))) ends.push_back(target);
  }
  const auto flows = [&](const std::string& gradient) {
    auto var = forward_var_.find(gradient);
    const std::string name = var == forward_var_.end() ? "" : var->second;
    const bool carried = targets.count(name) && !body.find_var(name);
    return (carried ? had_value(index, name) : inner->partials_.count(gradient) != 0) && given.insert(gradient).second;
  };
  // The initial value of a memory may initialize another one and be read by the block: each use contributes to its
  // gradient.
  const auto memory_flows = [&](size_t i) {
    return i < memories.names.size() && inner->partials_.count(gradient_name(memories.names[i])) != 0;
  };
  for (const auto& out : forward.output_args()) forward_var_.emplace(gradient_name(out), out);
  for (auto& slot : grad.outputs) {
    const bool starts = !memories.names.empty() && slot.name == ir::grad_name(kMemoriesBegunBy);
    for (size_t i = 0; i < slot.args.size(); ++i) {
      std::string& arg = slot.args[i];
      if (is_gradient(arg) && !(starts ? memory_flows(i) : flows(arg))) arg = ir::kEmptyVar;
    }
  }
  if (!ends.empty()) grad.attrs[kEndingGradients] = std::move(ends);
  if (auto whole = inner->whole_arrays(forward, targets); !whole.empty()) grad.attrs[kWholeArrays] = std::move(whole);
  give_sums(*inner, find_op(forward.type).has(kRepeats), grad);
  inner_[&grad] = std::move(inner);
}

}  // namespace anabranch
