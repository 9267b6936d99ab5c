#include "autodiff/block_gradients.h"

#include <algorithm>

#include "autodiff/backward_op.h"
#include "autodiff/names.h"
#include "ir/versions.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool any_in(const std::vector<std::string>& names, const std::set<std::string>& set) {
  return std::any_of(names.begin(), names.end(), [&](const auto& n) { return set.count(n) != 0; });
}

// Where a slot takes one variable whose gradient is not wanted, Fluid leaves the slot empty; in lists it keeps the
// place with kEmptyVar.
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

}  // namespace

BlockGradients::BlockGradients(const ir::Block& forward, const GradientRequest& request, ForwardReads::Versions outer)
    : forward_(forward), request_(request), reads_(forward, std::move(outer)) {}

bool BlockGradients::wants(const std::string& name) const {
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
    begins_.insert(op.get());
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
                                               const std::set<std::string>& inputs) const {
  const auto& ops = forward_.ops();
  std::vector<char> relevant(end, 1);
  if (!inputs.empty()) {
    std::set<std::string> reached = inputs;
    for (size_t i = 0; i < end; ++i) {
      relevant[i] = any_in(ops[i]->input_args(), reached);
      if (!relevant[i]) continue;
      for (const auto& out : ops[i]->output_args()) {
        if (wants(out)) reached.insert(out);
      }
    }
  }
  Path path;
  std::set<std::string> needed = targets;
  for (size_t i = end; i-- > 0;) {
    if (!relevant[i] || !any_in(ops[i]->output_args(), needed)) continue;
    path.push_back(i);
    for (const auto& in : ops[i]->input_args()) {
      if (wants(in)) needed.insert(in);
    }
  }
  return path;
}

void BlockGradients::run(size_t end, const std::set<std::string>& targets, const std::set<std::string>& inputs) {
  const Path path = find_path(end, targets, inputs);
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
    const bool asked = std::any_of(ins.begin(), ins.end(), [&](const auto& in) { return wants(in); });
    AB_CHECK(!(asked && def.forward()), Unsupported,
             "{}: gradients of gradients are not in this build; stop them with no_grad_set or stop_gradient", op.type);
    return;
  }
  GradContext context(op, forward_, [this](const std::string& name) { return wants(name); });
  def.run_grad(context);
  for (const auto& in : op.input_args()) forward_var_.emplace(gradient_name(in), in);
  std::vector<ir::OpRef> wanted;
  for (const auto& grad : context.ops) {
    set_roles(*grad);
    tidy_outputs(*grad);
    if (grad->output_args().empty() || !fill_missing(index, *grad)) continue;
    add_sub_block(index, *grad);
    if (grad->output_args().empty()) continue;
    reads_.note(index, *grad);
    wanted.push_back(grad);
  }
  emit(wanted);
}

// Gives every gradient that the op reads and nobody makes a value of zeros. False: it reads gradients, and there are
// none of them at all.
bool BlockGradients::fill_missing(size_t index, const ir::Op& grad) {
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

// A gradient op that was given the forward op's sub-block gets that block's gradient block instead. Inside, the
// gradients of outer variables have their plain names x@GRAD and are local.
void BlockGradients::add_sub_block(size_t index, ir::Op& grad) {
  const ir::Op& forward = *forward_.ops()[index];
  const auto subs = forward.sub_blocks();
  if (subs.size() != 1 || grad.sub_blocks() != subs) return;
  const ir::Block& body = forward_.program().block(subs[0]);
  std::set<std::string> targets;
  const auto ins = forward.input_args();
  auto inner = std::make_unique<BlockGradients>(body, request_, reads_.seen_by_block_of(index));
  for (const auto& out : forward.output_args()) {
    const std::string gradient = gradient_name(out);
    join_partials(gradient);
    auto it = partials_.find(gradient);
    if (it == partials_.end()) continue;
    inner->seed(out, it->second.names[0], nullptr);
    targets.insert(out);
  }
  for (const auto& target : targets) {
    AB_CHECK(!contains(ins, target), Unsupported,
             "{} reads variable {} and writes it in its sub-block: it has no gradient", forward.type, target);
  }
  inner->run(body.ops().size(), targets, {});
  std::set<std::string> given;  // a variable may be listed twice, its gradient flows once
  for (auto& slot : grad.outputs) {
    for (auto& arg : slot.args) {
      if (is_gradient(arg) && !(inner->partials_.count(arg) && given.insert(arg).second)) arg = ir::kEmptyVar;
    }
  }
  inner_[&grad] = std::move(inner);
}

}  // namespace anabranch
