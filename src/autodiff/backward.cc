#include "autodiff/backward.h"

#include <algorithm>
#include <map>
#include <memory>

#include "autodiff/block_gradients.h"
#include "autodiff/recompute.h"

namespace anabranch {
namespace {

// Undoes what a failed differentiation has added to the block.
class Undo {
 public:
  explicit Undo(ir::Block& block) : block_(block), ops_(block.ops().size()), vars_(block.vars().size()) {}
  void roll_back() {
    block_.remove_ops(ops_, block_.ops().size());
    while (block_.vars().size() > vars_) block_.remove_var(std::string(block_.vars().back()->name));
  }

 private:
  ir::Block& block_;
  size_t ops_, vars_;
};

void commit(BlockGradients& gradients, ir::Block& block) {
  Undo undo(block);
  try {
    gradients.commit(block);
  } catch (...) {
    undo.roll_back();
    throw;
  }
}

// The gradients of a loss. If a branch computes it from values of the blocks around the branch, their gradients are
// computed in the branch, too.
class LossGradients {
 public:
  LossGradients(ir::Block& block, const GradientRequest& request) : block_(block), request_(request) {
    levels_.push_back(std::make_unique<BlockGradients>(block, request));
  }
  BlockGradients& inner() { return *levels_.front(); }
  // Appends them to the block.
  void commit() {
    Undo undo(block_);
    try {
      levels_.back()->commit(block_);
      for (const ir::Block* of = &block_; of->parent() >= 0;) {
        of = &block_.program().block(of->parent());
        go_on(*of);
      }
    } catch (...) {
      undo.roll_back();
      throw;
    }
  }
  // "" if there is none. A level that computes a part of a gradient holds its sum.
  std::string gradient_of(const std::string& var) const {
    for (size_t i = levels_.size(); i-- > 0;) {
      if (std::string name = levels_[i]->gradient_of(var); !name.empty()) return name;
    }
    return "";
  }

 private:
  // From the values that ops of `outer` compute to what these ops read.
  void go_on(const ir::Block& outer) {
    auto level = std::make_unique<BlockGradients>(outer, request_);
    std::set<std::string> seen, targets;
    const auto seed = [&](const std::vector<std::string>& names, bool computed) {
      for (const auto& name : names) {
        const std::string gradient = is_inner(name, outer) ? "" : gradient_of(name);
        if (gradient.empty()) continue;
        if (seen.insert(name).second) level->seed(name, gradient, nullptr);
        if (computed) targets.insert(name);
      }
    };
    for (const auto& op : outer.ops()) {
      seed(op->input_args(), false);
      seed(op->output_args(), true);
    }
    if (targets.empty()) return;
    level->run(outer.ops().size(), targets, {});
    level->commit(block_);
    levels_.push_back(std::move(level));
  }
  // Whether a block inside of `outer` declares the variable.
  bool is_inner(const std::string& name, const ir::Block& outer) const {
    const ir::Block* block = &block_;
    while (block != &outer && !block->find_var(name)) block = &block_.program().block(block->parent());
    return block != &outer;
  }

  ir::Block& block_;
  const GradientRequest& request_;
  std::vector<std::unique_ptr<BlockGradients>> levels_;  // from the block outwards
};

ir::VarRef seen_var(const ir::Block& block, const std::string& name, const char* what) {
  ir::VarRef var = block.find_var_recursive(name);
  AB_CHECK(var != nullptr, NotFound, "{} {} is not in {}", what, name,
           block.idx() == 0 ? "the global block" : fmt::format("block {} or a block around it", block.idx()));
  return var;
}

// One past the last op that writes the variable; 0 if none does.
size_t end_of(const ir::Block& block, const std::string& name) {
  for (size_t i = block.ops().size(); i-- > 0;) {
    const auto outs = block.ops()[i]->output_args();
    if (std::find(outs.begin(), outs.end(), name) != outs.end()) return i + 1;
  }
  return 0;
}

// The first op from `first` on that starts a backward pass: the gradient of the loss.
size_t backward_begin(const ir::Block& block, size_t first) {
  const int needed = ir::role::kBackward | ir::role::kLoss;
  while (first < block.ops().size() && (block.ops()[first]->role() & needed) != needed) ++first;
  return first;
}

// A free name for the gradient of a target.
std::string seed_name(const ir::Block& block, const std::string& target) {
  const std::string name = ir::grad_name(target);
  if (!block.find_var(name)) return name;
  for (int i = 0;; ++i) {
    std::string next = fmt::format("{}_{}", name, i);
    if (!block.find_var(next)) return next;
  }
}

ir::OpRef fill_with_one(const ir::Var& var, const std::string& out, int role) {
  auto op = std::make_shared<ir::Op>();
  op->type = "fill_constant";
  op->outputs = {{"Out", {out}}};
  op->attrs = {{"shape", var.shape.to_vector()},
               {"value", 1.0f},
               {"dtype", static_cast<int32_t>(var.dtype)},
               {"op_role", int32_t{role}}};
  return op;
}

ir::OpRef shape_of(const std::string& var, const std::string& out) {
  auto op = std::make_shared<ir::Op>();
  op->type = "shape";
  op->inputs = {{"Input", {var}}};
  op->outputs = {{"Out", {out}}};
  op->attrs["op_role"] = int32_t{ir::role::kBackward};
  return op;
}

// Ones in the shape of the target at run time.
void seed_with_ones(BlockGradients& gradients, ir::Block& block, const ir::Var& target) {
  const std::string name = seed_name(block, target.name);
  ir::OpRef fill = fill_with_one(target, name, ir::role::kBackward);
  if (!target.shape.known()) {
    const std::string extents = target.name + "_shape";
    gradients.prepend(shape_of(target.name, extents));
    fill->set_input("ShapeTensor", {extents});
  }
  gradients.seed(target.name, name, fill);
}

std::vector<std::string> parameters_of(const ir::Program& program, const BackwardOptions& options) {
  for (const auto& name : options.parameters) seen_var(program.global_block(), name, "parameter");
  if (!options.parameters.empty()) return options.parameters;
  std::vector<std::string> names;
  for (const auto& var : program.global_block().vars()) {
    if (var->is_parameter && var->trainable) names.push_back(var->name);
  }
  return names;
}

std::map<std::string, ir::Op*> last_writers(const ir::Block& block, size_t first) {
  std::map<std::string, ir::Op*> writers;
  for (size_t i = first; i < block.ops().size(); ++i) {
    for (const auto& out : block.ops()[i]->output_args()) writers[out] = block.ops()[i].get();
  }
  return writers;
}

// Marks the op that computes the final gradient of a parameter: updates, reductions and servers rely on the mark.
void mark_gradient(ir::Op& op, const std::string& parameter, const std::string& gradient) {
  Attr& attr = op.attrs["op_role_var"];
  auto* names = std::get_if<std::vector<std::string>>(&attr);
  if (!names) names = &attr.emplace<std::vector<std::string>>();
  names->push_back(parameter);
  names->push_back(gradient);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> append_backward(ir::Program& program, const std::string& loss,
                                                                 const BackwardOptions& options) {
  ir::Block& block = program.block(options.block);
  const ir::VarRef var = seen_var(block, loss, "loss");
  // An unknown extent may turn out to be 1.
  AB_CHECK(var->shape.rank() > 0 && std::ranges::all_of(var->shape, [](int64_t n) { return n == 1 || n == kUnknown; }),
           InvalidArgument, "loss {} must have one element, got shape {}: take its mean", loss, var->shape.str());
  AB_CHECK(dtype_is_float(var->dtype), InvalidArgument, "loss {} must be of a float type, it is {}", loss,
           dtype_name(var->dtype));
  const size_t end = end_of(block, loss);
  AB_CHECK(end > 0, InvalidArgument, "no op of the program computes the loss {}", loss);
  const std::vector<std::string> parameters = parameters_of(program, options);

  for (const auto& checkpoint : options.checkpoints) seen_var(block, checkpoint, "checkpoint");

  const GradientRequest request{options.no_grad, options.after_op};
  LossGradients gradients(block, request);
  const std::string name = seed_name(block, loss);
  ir::OpRef fill = fill_with_one(*var, name, ir::role::kBackward | ir::role::kLoss);
  fill->attrs["shape"] = std::vector<int64_t>(static_cast<size_t>(var->shape.rank()), 1);
  gradients.inner().seed(loss, name, fill);
  gradients.inner().run(end, {loss}, {});
  const size_t before = block.ops().size();
  gradients.commit();

  ir::Op& loss_op = *block.ops()[end - 1];
  loss_op.attrs["op_role"] = int32_t{loss_op.role() | ir::role::kLoss};
  const auto writers = last_writers(block, end);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& parameter : parameters) {
    const std::string gradient = gradients.gradient_of(parameter);
    if (gradient.empty()) continue;
    const bool again = std::find(pairs.begin(), pairs.end(), std::pair(parameter, gradient)) != pairs.end();
    if (!again) mark_gradient(*writers.at(gradient), parameter, gradient);
    pairs.emplace_back(parameter, gradient);
  }
  if (!options.checkpoints.empty()) recompute(block, backward_begin(block, before), options.checkpoints);
  program.touch();
  return pairs;
}

std::vector<std::string> gradients(ir::Program& program, const std::vector<std::string>& targets,
                                   const std::vector<std::string>& inputs, const std::vector<std::string>& target_grads,
                                   const std::set<std::string>& no_grad, int block_index) {
  AB_CHECK(target_grads.empty() || target_grads.size() == targets.size(), InvalidArgument,
           "{} target gradients are given for {} targets", target_grads.size(), targets.size());
  ir::Block& block = program.block(block_index);
  const GradientRequest request{no_grad, {}};
  BlockGradients made(block, request);
  size_t end = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    const ir::VarRef target = seen_var(block, targets[i], "target");
    end = std::max(end, end_of(block, targets[i]));
    if (target_grads.empty() || target_grads[i].empty()) {
      seed_with_ones(made, block, *target);
      continue;
    }
    const ir::VarRef weight = seen_var(block, target_grads[i], "target gradient");
    AB_CHECK(compatible(weight->shape, target->shape), InvalidArgument,
             "target gradient {} has shape {}, its target {} has {}", weight->name, weight->shape.str(), target->name,
             target->shape.str());
    made.seed(targets[i], target_grads[i], nullptr);
  }
  for (const auto& input : inputs) seen_var(block, input, "input");
  made.run(end, {targets.begin(), targets.end()}, {inputs.begin(), inputs.end()});
  commit(made, block);
  std::vector<std::string> names;
  for (const auto& input : inputs) names.push_back(made.gradient_of(input));
  return names;
}

}  // namespace anabranch
