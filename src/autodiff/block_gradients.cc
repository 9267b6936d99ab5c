#include "autodiff/block_gradients.h"

#include <algorithm>

#include "ir/versions.h"
#include "opdef/append_op.h"

namespace anabranch {
namespace {

bool is_gradient(const std::string& name) { return name.ends_with(kGradientMark); }
std::string gradient_name(const std::string& var) { return ir::grad_name(var) + kGradientMark; }
std::string plain(std::string name) {
  if (is_gradient(name)) name.pop_back();
  return name;
}

ir::OpRef backward_op(std::string type, std::vector<ir::Slot> inputs, std::vector<ir::Slot> outputs) {
  auto op = std::make_shared<ir::Op>();
  op->type = std::move(type);
  op->inputs = std::move(inputs);
  op->outputs = std::move(outputs);
  op->attrs["op_role"] = int32_t{ir::role::kBackward};
  return op;
}

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

BlockGradients::BlockGradients(const ir::Block& forward, const GradientRequest& request)
    : forward_(forward), request_(request) {
  for (size_t i = 0; i < forward.ops().size(); ++i) {
    for (const auto& out : forward.ops()[i]->output_args()) {
      auto& writers = writers_[out];
      if (writers.empty() || writers.back() != i) writers.push_back(i);
    }
  }
}

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
    if (next != path.end() && *next == i) {
      ++next;
      try {
        differentiate(i);
      } catch (Error& e) {
        throw e.with_op(op.describe(static_cast<int>(i), forward_.idx())).with_while("differentiating");
      }
    }
    finish_versions(op);
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
    AB_CHECK(!(asked && op.type.ends_with("_grad")), Unsupported,
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
    note_reads(index, *grad);
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
    note_reads(index, *zeros);
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
  auto inner = std::make_unique<BlockGradients>(body, request_);
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

// The gradient ops of one forward op. Reads first: partial gradients are joined before their first reader. Then the
// outputs get their names. The gradient of an op that worked in place is the next version of what it has read, no
// further part of it.
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
      if (read.count(gradient) && replaced.insert(gradient).second) partials_.erase(gradient);
      // What a later one of the ops still reads keeps its name.
      produce(gradient, arg, ops.size() > 1 && replaced.count(gradient) != 0);
    }
  }
}

// Outputs that are gradients, by slot, with what they are gradients of. They are emptied until their turn comes, so
// that renaming the first part does not touch the second of the same op.
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
  // Inside a block, the gradient that comes from outside goes by the name that the sum would have.
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
    if (parts.names.size() == 1 && parts.names[0] == gradient && !outside_.count(gradient)) {
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
  for (size_t i = first_op; i < ops_.size(); ++i) {
    ops_[i]->rename_input(from, to);
    auto inner = inner_.find(ops_[i].get());
    if (inner != inner_.end()) inner->second->rename_outside(from, to);
  }
}

// The surrounding block renames a gradient. One of that name that is made in here is another one.
void BlockGradients::rename_outside(const std::string& from, const std::string& to) {
  if (!outside_.erase(from)) return;
  outside_.insert(to);
  rename_reads(from, to, 0);
}

// An op that makes a variable anew ends the life of its gradient: earlier ops made another version of the variable.
// So does one in place that passes no gradient on. Ops with sub-blocks may not have run, and arrays are written in
// part: those do not end it.
void BlockGradients::finish_versions(const ir::Op& op) {
  if (!op.sub_blocks().empty()) return;
  const auto ins = op.input_args();
  for (const auto& out : op.output_args()) {
    const std::string gradient = gradient_name(out);
    auto it = partials_.find(gradient);
    if (it == partials_.end() || (contains(ins, out) && find_op(op.type).has_grad())) continue;
    const ir::VarRef var = forward_.find_var_recursive(out);
    if (var && (var->kind != VarKind::kLoDTensor || var->persistable)) continue;
    join_partials(gradient);
    finished_.emplace(gradient, it->second.names[0]);
    partials_.erase(it);
  }
}

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

// ---- versions: what the gradient ops read of the forward part

int BlockGradients::writes_before(const std::string& name, size_t end) const {
  auto it = writers_.find(name);
  if (it == writers_.end()) return 0;
  return static_cast<int>(std::lower_bound(it->second.begin(), it->second.end(), end) - it->second.begin());
}

// Whether the variable is written again. Updates of parameters do not count: a second loss of one program is
// differentiated by the updated parameters, in place, as it has always been.
bool BlockGradients::is_stale(const std::string& name, int version) const {
  auto it = writers_.find(name);
  if (it == writers_.end()) return false;
  return std::any_of(it->second.begin() + version, it->second.end(),
                     [&](size_t i) { return (forward_.ops()[i]->role() & ir::role::kOptimize) == 0; });
}

// Notes which versions of the forward variables the gradient op of op `index` reads: what that op saw, or made.
void BlockGradients::note_reads(size_t index, ir::Op& grad) {
  const auto ins = forward_.ops()[index]->input_args();
  for (auto& slot : grad.inputs) {
    for (size_t i = 0; i < slot.args.size(); ++i) {
      std::string& arg = slot.args[i];
      if (arg == ir::kEmptyVar || is_gradient(arg)) continue;
      const bool marked = arg.ends_with(kWrittenMark);
      if (marked) arg.pop_back();
      const size_t at = marked || !contains(ins, arg) ? index + 1 : index;
      reads_[&grad].push_back({slot.name, i, writes_before(arg, at), at});
    }
  }
}

// Ops in the block of the forward ops say which version they read, where it is not the latest. Those of a gradient
// block read a copy, which the forward block takes in time. An op with a gradient block of its own reads, like that
// block, what the forward op has read: the graph sees to that.
void BlockGradients::bind_reads(ir::Op& op, bool same_block) {
  if (!op.sub_blocks().empty()) return;
  std::vector<ir::VersionRead> bound;
  for (const Read& read : reads_[&op]) {
    for (auto& slot : op.inputs) {
      if (slot.name != read.slot || !is_stale(slot.args[read.arg], read.version)) continue;
      std::string& arg = slot.args[read.arg];
      if (same_block) {
        bound.push_back({read.slot, read.arg, read.version});
      } else {
        auto [copy, made] = copies_.try_emplace({arg, read.version}, Copy{"", read.at});
        if (made) copy->second.name = copy_name(arg, read.version);
        arg = copy->second.name;
      }
    }
  }
  if (!bound.empty()) ir::set_version_reads(op, bound);
}

std::string BlockGradients::copy_name(const std::string& var, int version) const {
  std::string name = fmt::format("{}@VERSION@{}", var, version);
  while (forward_.find_var_recursive(name)) name += "_";
  return name;
}

void BlockGradients::insert_copies(ir::Block& forward) const {
  std::vector<std::pair<std::string, Copy>> last_first;
  for (const auto& [version, copy] : copies_) last_first.emplace_back(version.first, copy);
  std::stable_sort(last_first.begin(), last_first.end(),
                   [](const auto& a, const auto& b) { return a.second.at > b.second.at; });
  for (const auto& [var, copy] : last_first) {
    append_op(forward, {"assign", {{"X", {var}}}, {{"Out", {copy.name}}}, {{"op_role", int32_t{ir::role::kBackward}}}},
              copy.at);
    forward.find_var(copy.name)->stop_gradient = true;
  }
}

// What the op's names stand for has been settled: they become names of the program.
void BlockGradients::strip_marks(ir::Op& op) {
  for (auto* slots : {&op.inputs, &op.outputs}) {
    for (auto& slot : *slots) {
      for (auto& arg : slot.args) arg = plain(std::move(arg));
    }
  }
}

void BlockGradients::declare_outputs(ir::Block& into, const ir::Op& op) const {
  for (const auto& name : op.output_args()) {
    // A gradient that goes by the same name outside is another one.
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

void BlockGradients::commit(ir::Block& into) {
  avoid_existing(into);
  const bool same_block = into.idx() == forward_.idx();
  for (const auto& op : ops_) bind_reads(*op, same_block);
  insert_copies(into.program().block(forward_.idx()));
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
      check_op(*op);
      infer_op(into, *op);
    } catch (Error& e) {
      throw e.with_op(op->describe(index, into.idx())).with_while("appending gradient ops");
    }
    into.push_op(op);
    if (request_.after_op && !begins_.count(op.get())) request_.after_op(into, *op);
  }
}

}  // namespace anabranch
