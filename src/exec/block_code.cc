#include "exec/block_code.h"

#include <algorithm>
#include <set>

#include "opdef/check_op.h"

namespace anabranch {

BlockCode::BlockCode(BlockSet& set, int idx, BlockSet::Outer outer, BlockCode* around)
    : set_(set),
      block_(set.program_.block(idx)),
      outer_(std::move(outer)),
      around_(around),
      keeps_(!set.gradients_of(idx).empty()) {
  if (around_) {
    place_ = around_->inner_.size();
    around_->inner_.push_back(this);
  }
  const int above = around_ ? around_->block_.idx() : 0;
  AB_CHECK(block_.parent() == above, InvalidArgument, "block {} is run by an op of block {}, its parent is block {}",
           idx, above, block_.parent());
  for (const auto& v : block_.vars()) {
    const auto [at, fresh] = vars_.try_emplace(v->name, static_cast<int>(vars_.size()));
    if (fresh && v->kind == VarKind::kLoDTensorArray) arrays_.push_back(at->second);
  }
  shown_.resize(vars_.size(), 0);
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
  if (it == vars_.end()) return -1;
  AB_CHECK(!set_.options_.bodies->is_private(block_.idx(), name), Internal, "variable {} of block {} is its own", name,
           block_.idx());
  show(it->second);
  return it->second;
}

// From now on the value's signature is checked before each iteration.
void BlockCode::show(int var) {
  if (shown_[static_cast<size_t>(var)]) return;
  shown_[static_cast<size_t>(var)] = 1;
  found_watched_ = false;
  ++choices_;
}

BlockCode::Arg BlockCode::own(const std::string& name) { return {this, vars_.at(name), nullptr}; }

// This block, then its surroundings; the forward block of a gradient block comes before the parents.
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
  if (is_discarded(name)) return {nullptr, 0, &buffers_.emplace_back()};
  const Arg arg = resolve(name);
  AB_CHECK(arg.block || arg.value, NotFound, "variable {} of op {} in block {} is in no block that can be seen", name,
           op.type, block_.idx());
  return arg;
}

void BlockCode::prepare() {
  const Graph& graph = set_.options_.bodies->of(block_.idx());
  for (const GraphNode& node : graph.nodes) {
    try {
      nodes_.push_back(make_node(node.op, node.index, node.describe(block_.idx())));
      nodes_.back().first_part = spare_.size();
      for (const GraphNode::Part& part : node.parts) {
        spare_.push_back(make_node(part.op, part.index, part.op->describe(part.index, block_.idx())));
      }
      nodes_.back().parts = node.parts.size();
    } catch (Error& e) {
      throw e.with_op(node.describe(block_.idx()));
    }
  }
  find_groups(graph);
  find_private(graph);
  if (keeps_) note_shapes();
}

// The gradient block has a variable x@GRAD for each outer x whose gradient may have to be created from nothing.
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

bool BlockCode::is_buffer(const Arg& arg) const {
  return std::any_of(buffers_.begin(), buffers_.end(), [&](const Value& v) { return &v == arg.value; });
}

int BlockCode::place(const Arg& arg, const std::string& name) {
  const auto it = std::find(places_.begin(), places_.end(), arg);
  if (it != places_.end()) return static_cast<int>(it - places_.begin());
  places_.push_back(arg);
  names_.push_back(name);
  return static_cast<int>(places_.size()) - 1;
}

size_t BlockCode::add_args(const ir::Op& op, const std::vector<ir::Slot>& slots) {
  const size_t begin = args_.size();
  for (const auto& s : slots) {
    for (const auto& a : s.args) args_.push_back(place(find_arg(op, a), a));
  }
  args_.push_back(place({nullptr, 0, Value::nothing()}));  // target of handles for missing arguments
  return begin;
}

BlockCode::Node BlockCode::make_node(const ir::OpRef& op, int index, std::string text) {
  const OpDef& def = find_op(op->type);
  Node node;
  for (int sub : op->sub_blocks()) node.runs.push_back(&set_.make(sub, outer_, this));
  node.ins = add_args(*op, op->inputs);
  node.outs = add_args(*op, op->outputs);
  buffer_outputs(*op, def, node);
  note_touched(*op, node);
  node.later = def.has(kAsynchronous);
  node.dynamic = def.is_dynamic(*op) || def.has(kRunsBlock);
  node.shape = make_shape_fn({&def, op, set_.options_.seed, set_.factory(), (block_.idx() << 20) + index});
  node.type = op->type;
  node.text = std::move(text);
  node.number = set_.number(node.type, node.text);
  return node;
}

void BlockCode::note_touched(const ir::Op& op, Node& node) {
  const auto touch = [&](size_t first, size_t end) {
    for (size_t i = first; i + 1 < end; ++i) {  // the last one stands for missing arguments
      const Arg& arg = places_[static_cast<size_t>(args_[i])];
      if (arg.block || arg.value) node.touches.push_back(args_[i]);
    }
  };
  touch(node.ins, node.outs);
  node.reads = node.touches.size();
  touch(node.outs, args_.size());
  for (const BufferedOutput& output : node.buffered) {
    std::erase(node.touches, output.made);
    node.touches.push_back(output.target);
    if (!output.in_place) node.touches.push_back(output.made);
  }
  for (int sub : op.sub_blocks()) {
    for (const Arg& arg : set_.made_.at(sub)->writes_outside_) node.touches.push_back(place(arg));
  }
  for (size_t i = node.reads; i < node.touches.size(); ++i) {
    const Arg& arg = places_[static_cast<size_t>(node.touches[i])];
    if (arg.block == this || is_buffer(arg)) continue;
    writes_outside_.push_back(arg);
    if (arg.block) arg.block->show(arg.var);
  }
}

namespace {

bool updates(const ir::Op& op, const OpDef& def, const ir::Slot& out, size_t i) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const ir::Slot& in) {
    return i < in.args.size() && in.args[i] == out.args[i] && def.is_update(in.name, out.name);
  });
}

// The op reads the value through this slot only, and may compute the output in place.
bool makes_in_place(const ir::Op& op, const OpDef& def, const ir::Slot& out, const std::string& name) {
  const auto args = op.input_args();
  if (out.args.size() != 1 || std::count(args.begin(), args.end(), name) != 1) return false;
  const auto in = std::find_if(op.inputs.begin(), op.inputs.end(),
                               [&](const ir::Slot& s) { return s.args.size() == 1 && s.args[0] == name; });
  return in != op.inputs.end() && std::any_of(def.shares().begin(), def.shares().end(), [&](const auto& pair) {
           return pair.first == in->name && pair.second == out.name;
         });
}

}  // namespace

// Ops that run a block read and write outer variables in place, and copying a variable to itself does nothing.
void BlockCode::buffer_outputs(const ir::Op& op, const OpDef& def, Node& node) {
  if (def.has(kKeepsOutputs) || !op.sub_blocks().empty() || def.copies(op)) return;
  size_t at = node.outs;
  for (const auto& out : op.outputs) {
    for (size_t i = 0; i < out.args.size(); ++i, ++at) {
      const int target = args_[at];
      const Arg& arg = places_[static_cast<size_t>(target)];
      const auto ins = args_.begin() + static_cast<std::ptrdiff_t>(node.ins);
      const auto outs = args_.begin() + static_cast<std::ptrdiff_t>(node.outs);
      const bool reads_it = (arg.block || arg.value) && std::find(ins, outs, target) != outs;
      if (!reads_it || updates(op, def, out, i)) continue;
      args_[at] = place({nullptr, 0, &buffers_.emplace_back()});
      const bool in_place = !def.is_dynamic(op) && makes_in_place(op, def, out, out.args[i]);
      node.buffered.push_back({at, args_[at], target, in_place});
    }
  }
}

void BlockCode::each_value(const FrameStack& stack, const BlockSet::Visit& visit) const {
  for (const auto& frame : stack.frames) {
    for (const auto& [name, var] : vars_) visit(name, frame->values[static_cast<size_t>(var)]);
    for (const BlockCode* inner : inner_) inner->each_value(frame->inner[inner->place_], visit);
  }
}

void BlockCode::drop() {
  root_ = {};
  current_ = nullptr;
  entered_ = false;
  for (Value& v : buffers_) v.clear();
  memory_.drop();
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
