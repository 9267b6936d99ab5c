// Inserts gradient ops into a block: names are settled, variables declared, shapes inferred.
#include <algorithm>

#include "autodiff/block_gradients.h"
#include "autodiff/names.h"
#include "opdef/append_op.h"

namespace anabranch {

// A block may have been differentiated before. Its gradients keep their names, the new ones take Fluid's prefix.
void BlockGradients::avoid_existing(const ir::Block& into) {
  std::set<std::string> made;
  for (const auto& op : ops_) {
    for (const auto& out : op->output_args()) {
      if (is_gradient(out)) made.insert(out);
    }
  }
  for (const auto& name : made) {
    if (!into.find_var(plain(name))) continue;
    std::string free = "grad/grad/" + name;
    while (into.find_var(plain(free))) free = "grad/" + free;
    rename(name, free, 0);
    if (forward_var_.count(name)) forward_var_[free] = forward_var_[name];
    for (auto& [gradient, parts] : partials_) std::replace(parts.names.begin(), parts.names.end(), name, free);
    for (auto& [gradient, finished] : finished_) {
      if (finished == name) finished = free;
    }
  }
}

// The variables that the op's names stand for are settled: they become names of the program.
void BlockGradients::strip_marks(ir::Op& op) {
  for (auto* slots : {&op.inputs, &op.outputs}) {
    for (auto& slot : *slots) {
      for (auto& arg : slot.args) arg = plain(std::move(arg));
    }
  }
}

void BlockGradients::declare_outputs(ir::Block& into, const ir::Op& op) const {
  for (const auto& name : op.output_args()) {
    // A gradient of the same name outside is a different variable.
    if (is_gradient(name) ? into.find_var(plain(name)) : into.find_var_recursive(name)) continue;
    ir::Var var;
    auto it = forward_var_.find(name);
    if (it != forward_var_.end()) {
      if (const ir::VarRef of = forward_.find_var_recursive(it->second)) {
        var.kind = of->kind;
        var.shape = of->shape;
        var.dtype = of->dtype;
        var.lod_level = of->lod_level;
      }
    }
    var.name = plain(name);
    into.create_var(var);
  }
}

// Gradient ops name the slots that their forward op's declaration gives them, as in Fluid; check_op names all.
static void keep_named(const std::vector<ir::Slot>& named, std::vector<ir::Slot>* slots) {
  std::erase_if(*slots, [&](const ir::Slot& slot) {
    return slot.args.empty() &&
           std::none_of(named.begin(), named.end(), [&](const auto& s) { return s.name == slot.name; });
  });
}

void BlockGradients::commit(ir::Block& into) {
  avoid_existing(into);
  const bool same_block = into.idx() == forward_.idx();
  for (const auto& target : submitted_) {
    const ir::VarRef of = forward_.find_var_recursive(target);
    ir::Var var;
    var.name = ir::grad_name(target);
    var.kind = of->kind;
    var.shape = of->shape;
    var.dtype = of->dtype;
    var.lod_level = of->lod_level;
    into.create_var(var);
  }
  for (const auto& op : ops_) reads_.bind(*op, same_block);
  reads_.insert_copies(into.program().block(forward_.idx()));
  for (const auto& op : ops_) {
    auto inner = inner_.find(op.get());
    if (inner != inner_.end()) {
      ir::Block& block = into.program().create_block(into.idx());
      block.forward_block = inner->second->forward_.idx();
      inner->second->commit(block);
      for (auto& [name, value] : op->attrs) {
        if (auto* ref = std::get_if<BlockRef>(&value)) ref->idx = block.idx();
      }
    }
    const auto index = static_cast<int>(into.ops().size());
    try {
      declare_outputs(into, *op);
      strip_marks(*op);
      const std::vector<ir::Slot> inputs = op->inputs, outputs = op->outputs;
      check_op(*op);
      infer_op(into, *op, [&](const std::string& name) { return reads_.version_meant(*op, name); });
      keep_named(inputs, &op->inputs);
      keep_named(outputs, &op->outputs);
    } catch (Error& e) {
      throw e.with_op(op->describe(index, into.idx())).with_while("appending gradient ops");
    }
    into.push_op(op);
    if (request_.after_op && !starts_.count(op.get())) request_.after_op(into, *op);
  }
}

}  // namespace anabranch
