#include "exec/block_code.h"

#include <algorithm>
#include <set>

#include "opdef/append_op.h"

namespace anabranch {

BlockCode::BlockCode(BlockSet& set, int idx, BlockSet::Outer outer, BlockCode* around)
    : set_(set),
      block_(set.program_.block(idx)),
      outer_(std::move(outer)),
      around_(around),
      keeps_(!set.gradients_of(idx).empty()) {
  if (around_) place_ = around_->blocks_++;
  const int above = around_ ? around_->block_.idx() : 0;
  AB_CHECK(block_.parent() == above, InvalidArgument, "block {} is run by an op of block {}, its parent is block {}",
           idx, above, block_.parent());
  for (const auto& v : block_.vars()) {
    const auto [at, fresh] = vars_.try_emplace(v->name, static_cast<int>(vars_.size()));
    if (fresh && v->kind == VarKind::kLoDTensorArray) arrays_.push_back(at->second);
  }
  if (block_.forward_block <= 0) return;
  const auto made = set_.made_.find(block_.forward_block);
  AB_CHECK(made != set_.made_.end(), InvalidArgument,
           "block {} is the gradient of block {}, which no op before has run", idx, block_.forward_block);
  forward_ = made->second.get();
  AB_CHECK(forward_->around_ == (around_ ? around_->forward_ : nullptr), InvalidArgument,
           "block {} is the gradient of block {}, which is run elsewhere", idx, block_.forward_block);
}

int BlockCode::find(const std::string& name) {
  const auto it = vars_.find(name);
  return it == vars_.end() ? -1 : it->second;
}

BlockCode::Arg BlockCode::own(const std::string& name) { return {this, vars_.at(name), nullptr}; }

// This block, then what surrounds it; the block that this one is the gradient of comes before the parents.
BlockCode::Arg BlockCode::resolve(const std::string& name) {
  for (BlockCode* code = this; code; code = code->around_) {
    if (code->vars_.count(name)) return code->own(name);
    if (code->forward_ && code->forward_->vars_.count(name)) {
      sees_forward_ = true;
      return code->forward_->own(name);
    }
  }
  return {nullptr, 0, outer_(name)};
}

BlockCode::Arg BlockCode::find_arg(const ir::Op& op, const std::string& name) {
  if (name == ir::kEmptyVar) return {};
  if (is_discarded(name)) return {nullptr, 0, &made_aside_.emplace_back()};
  const Arg arg = resolve(name);
  AB_CHECK(arg.block || arg.value, NotFound, "variable {} of op {} in block {} is in no block that can be seen", name,
           op.type, block_.idx());
  return arg;
}

void BlockCode::prepare() {
  for (size_t i = 0; i < block_.ops().size(); ++i) {
    try {
      add_node(*block_.ops()[i], static_cast<int>(i));
    } catch (Error& e) {
      throw e.with_op(block_.ops()[i]->describe(static_cast<int>(i), block_.idx()));
    }
  }
  if (keeps_) note_shapes();
}

// The gradient block has a variable x@GRAD for each outer x to which a gradient may have to be made of nothing.
void BlockCode::note_shapes() {
  std::set<std::string> names;
  for (int gradient : set_.gradients_of(block_.idx())) {
    for (const auto& v : set_.program_.block(gradient).vars()) {
      if (v->name.ends_with("@GRAD")) names.insert(v->name.substr(0, v->name.size() - 5));
    }
  }
  for (const auto& name : names) {
    if (vars_.count(name)) continue;
    const Arg arg = resolve(name);
    if (arg.block || arg.value) shaped_.emplace_back(name, arg);
  }
}

void BlockCode::add_node(const ir::Op& made, int index) {
  const ir::OpRef op = checked_copy(made);
  const OpDef& def = find_op(op->type);
  for (int sub : op->sub_blocks()) set_.make(sub, outer_, this);
  Node node;
  const auto add = [&](const std::vector<ir::Slot>& slots) {
    const size_t begin = args_.size();
    for (const auto& s : slots) {
      for (const auto& a : s.args) args_.push_back(find_arg(*op, a));
    }
    args_.push_back({nullptr, 0, Value::nothing()});  // where handles of missing arguments point
    return begin;
  };
  node.ins = add(op->inputs);
  node.outs = add(op->outputs);
  set_aside(*op, def, node);
  node.later = def.has(kCompletesLater);
  node.shape = make_shape_fn({&def, op, set_.seed_, set_.factory(), (block_.idx() << 20) + index});
  nodes_.push_back(std::move(node));
}

namespace {

bool updates(const ir::Op& op, const OpDef& def, const ir::Slot& out, size_t i) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const ir::Slot& in) {
    return i < in.args.size() && in.args[i] == out.args[i] && def.is_update(in.name, out.name);
  });
}

}  // namespace

// Ops that run a block read and write outer variables in their place, and a copy of a variable to itself does nothing.
void BlockCode::set_aside(const ir::Op& op, const OpDef& def, Node& node) {
  if (def.has(kKeepsOutputs) || !op.sub_blocks().empty() || def.copies(op)) return;
  const auto same = [](const Arg& a, const Arg& b) {
    return a.block == b.block && a.var == b.var && a.value == b.value;
  };
  size_t at = node.outs;
  for (const auto& out : op.outputs) {
    for (size_t i = 0; i < out.args.size(); ++i, ++at) {
      Arg& arg = args_[at];
      const bool reads_it =
          (arg.block || arg.value) && std::any_of(args_.begin() + static_cast<std::ptrdiff_t>(node.ins),
                                                  args_.begin() + static_cast<std::ptrdiff_t>(node.outs),
                                                  [&](const Arg& in) { return same(in, arg); });
      if (!reads_it || updates(op, def, out, i)) continue;
      node.asides.push_back({&made_aside_.emplace_back(), arg});
      arg = {nullptr, 0, node.asides.back().made};
    }
  }
}

bool BlockCode::keeps_array(int var) {
  std::erase(arrays_, var);
  return block_.vars()[static_cast<size_t>(var)]->kind == VarKind::kLoDTensorArray;
}

int BlockCode::find_shaped(const std::string& name) {
  if (!forward_) return -1;
  const auto& shaped = forward_->shaped_;
  const auto it = std::find_if(shaped.begin(), shaped.end(), [&](const auto& s) { return s.first == name; });
  return it == shaped.end() ? -1 : static_cast<int>(it - shaped.begin());
}

}  // namespace anabranch
