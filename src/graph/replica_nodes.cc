#include "graph/replica_nodes.h"

#include <algorithm>
#include <set>

#include "graph/edit.h"
#include "ir/versions.h"
#include "opdef/check_op.h"

namespace anabranch {
ReplicaNodes::ReplicaNodes(const ir::Program& program, OuterNamesOf& outer_names, Ownership& ownership, Graph& graph)
    : program_(program),
      block_(program.global_block()),
      outer_names_(outer_names),
      ownership_(ownership),
      graph_(graph),
      versions_(graph) {
  find_old_reads();
}

const ir::Var& ReplicaNodes::describe(const std::string& name) const {
  static const ir::Var discarded;
  if (is_discarded(name)) return discarded;
  const auto desc = block_.find_var_recursive(name);
  AB_CHECK(desc != nullptr, NotFound, "variable {} is not in the program", name);
  return *desc;
}

void ReplicaNodes::find_old_reads() {
  std::map<int, size_t> op_of;  // by its blocks
  for (size_t i = 0; i < block_.ops().size(); ++i) {
    const ir::Op& op = *block_.ops()[i];
    for (const ir::VersionRead& read : ir::version_reads(op)) {
      versions_.will_read(op.input(read.slot).at(read.arg), read.version);
    }
    for (int sub : op.sub_blocks()) {
      op_of[sub] = i;
      const auto forward = op_of.find(program_.block(sub).forward_block);
      if (forward != op_of.end()) find_old_reads_of_block(sub, forward->second, i);
    }
  }
}

// The gradient of a block reads the values that the block read (see read()), which may have been overwritten since.
void ReplicaNodes::find_old_reads_of_block(int gradient, size_t forward, size_t end) {
  std::set<std::string> written;
  for (size_t i = forward; i < end; ++i) {
    for (const auto& name : block_.ops()[i]->output_args()) written.insert(name);
  }
  for (const auto& name : outer_names_.of(gradient).reads) {
    if (!written.count(name)) continue;
    const int before = ir::writes_before(block_, name, forward);
    versions_.will_read(name, before);
    const auto made = block_.ops()[forward]->output_args();
    if (std::find(made.begin(), made.end(), name) != made.end()) versions_.will_read(name, before + 1);
  }
}

int ReplicaNodes::replica_of(const Site& at, const std::string& name) const {
  return ownership_.replica_of(name, at.replica, at.updates);
}

// The gradient of a block reads the values that the block read, even if they were overwritten since.
int ReplicaNodes::read(const Site& at, const std::string& name) {
  for (int sub : at.op.sub_blocks()) {
    const auto seen = seen_.find({program_.block(sub).forward_block, at.replica});
    if (seen == seen_.end()) continue;
    if (const auto it = seen->second.find(name); it != seen->second.end()) return it->second;
  }
  return versions_.read(name, replica_of(at, name), describe(name));
}

// A gradient op may declare that it reads an older value than the current one.
int ReplicaNodes::read_arg(const Site& at, const ir::Slot& slot, size_t i) {
  const std::string& name = slot.args[i];
  const auto writes = ir::version_read(at.op, slot.name, i);
  if (!writes) return read(at, name);
  return versions_.read_after(*writes, name, replica_of(at, name), describe(name));
}

// An output that is an updated input keeps its variable.
int ReplicaNodes::updated_input(const Site& at, const GraphNode& node, const std::string& slot, size_t i) const {
  const std::string& name = at.op.output(slot)[i];
  if (versions_.must_stay(name, replica_of(at, name))) return -1;
  size_t first = 0;
  for (const ir::Slot& in : at.op.inputs) {
    const bool same = i < in.args.size() && in.args[i] == name;
    if (same && at.def.is_update(in.name, slot)) return node.ins[first + i];
    first += in.args.size();
  }
  return -1;
}

void ReplicaNodes::read_args(const Site& at, GraphNode& node) {
  for (const auto& s : at.op.inputs) {
    for (size_t i = 0; i < s.args.size(); ++i) {
      node.ins.push_back(s.args[i] == ir::kEmptyVar ? -1 : read_arg(at, s, i));
    }
  }
  for (int sub : at.op.sub_blocks()) {
    auto& seen = seen_[{sub, at.replica}];
    for (const auto& n : outer_names_.of(sub).reads) node.more_reads.push_back(seen[n] = read(at, n));
    for (const auto& n : at.op.input_args()) seen[n] = read(at, n);
    for (const auto& n : outer_names_.of(sub).writes) seen[n] = read(at, n);
  }
}

// Outputs that may keep their previous value, and variables that sub-blocks write. Before the arguments are read: an op
// that also reads such a variable works on the copy.
void ReplicaNodes::keep_outputs(const Site& at, GraphNode& node) {
  const auto keep = [&](const std::string& name) {
    if (stays(at.def, name, replica_of(at, name))) return var(name, replica_of(at, name));
    int copied = -1;
    const bool fresh = starts_array(at, name);
    const int var = versions_.keep(name, replica_of(at, name), describe(name), &copied);
    if (copied >= 0) push_copy(node, copied, var);
    if (fresh) push_empty_array(node, var);
    return var;
  };
  if (at.def.has(kKeepsOutputs)) {
    for (const auto& s : at.op.outputs) {
      for (const auto& a : s.args) node.outs.push_back(a == ir::kEmptyVar ? -1 : keep(a));
    }
  }
  for (int sub : at.op.sub_blocks()) {
    for (const auto& n : outer_names_.of(sub).writes) node.more_writes.push_back(keep(n));
  }
}

void ReplicaNodes::write_args(const Site& at, GraphNode& node) {
  for (const auto& s : at.op.outputs) {
    for (size_t i = 0; i < s.args.size(); ++i) {
      if (s.args[i] == ir::kEmptyVar) {
        node.outs.push_back(-1);
        continue;
      }
      const int updated = updated_input(at, node, s.name, i);
      const int replica = replica_of(at, s.args[i]);
      node.outs.push_back(updated >= 0 ? updated : versions_.write(s.args[i], replica, describe(s.args[i])));
    }
  }
}

void ReplicaNodes::add(int index, const ir::OpRef& op, int replica, bool updates) {
  const Site at{*op, find_op(op->type), replica, updates};
  GraphNode node;
  node.op = op;
  node.index = index;
  node.replica = replica;
  keep_outputs(at, node);
  read_args(at, node);
  if (updates) ownership_.note_outputs(*op, replica);
  if (node.outs.empty()) write_args(at, node);
  const auto written = block_.ops()[index]->output_args();
  for (const auto& n : std::set<std::string>(written.begin(), written.end())) versions_.written(n, replica_of(at, n));
  if (at.def.has(kOrdered)) node.tokens.push_back(GraphNode::kOrderToken);
  push(std::move(node));
}

// A node's shapes depend on values if its op says so, or if it reads a value with such a shape. A variable that the
// node changes in place keeps its shape.
void ReplicaNodes::push(GraphNode node) {
  const OpDef& def = find_op(node.op->type);
  bool dynamic = def.is_dynamic(*node.op);
  const auto reads = graph_.reads(node);
  for (int v : reads) dynamic |= graph_.vars[v].dynamic;
  for (int v : graph_.writes(node)) {
    const bool same_form = def.is(kSameForms) && graph_.vars[v].desc.persistable;
    const bool changes = same_form || std::find(reads.begin(), reads.end(), v) != reads.end();
    graph_.vars[v].produced |= !changes;
    graph_.vars[v].dynamic |= dynamic && !changes;
    versions_.touch(v);
  }
  graph_.nodes.push_back(std::move(node));
}

void ReplicaNodes::push_copy(const GraphNode& next_to, int from, int to) {
  NodeBuilder copy(graph_, "copy_value", next_to);
  GraphNode node = copy.in("X", from).out("Out", to).done();
  node.replica = graph_.vars[to].replica;
  push(std::move(node));
}

// An array that has not been written in this run: ops write it element by element.
bool ReplicaNodes::starts_array(const Site& at, const std::string& name) {
  const ir::Var& desc = describe(name);
  if (desc.kind != VarKind::kLoDTensorArray || desc.persistable) return false;
  return !versions_.touched(graph_.var(name, replica_of(at, name), desc));
}

void ReplicaNodes::push_empty_array(const GraphNode& next_to, int var) {
  NodeBuilder empty(graph_, "empty_array", next_to);
  GraphNode node = empty.out("Out", var).done();
  node.replica = graph_.vars[var].replica;
  push(std::move(node));
}

void ReplicaNodes::keep_last_versions() {
  for (const auto& [first, last] : versions_.renewed()) {
    if (!graph_.vars[first].desc.persistable) continue;
    const int writer = last_node_that_writes(last);
    const bool dynamic = graph_.vars[first].dynamic;
    push_copy(graph_.nodes[writer], last, first);
    graph_.vars[first].dynamic = dynamic;  // it has no reader after the copy
  }
}

int ReplicaNodes::write(const OpDef& def, const std::string& name, int replica) {
  return stays(def, name, replica) ? var(name, replica) : write(name, replica);
}

int ReplicaNodes::write_again(const std::string& name, int replica) {
  const int var = write(name, replica);
  versions_.written(name, replica);
  return var;
}

bool ReplicaNodes::stays(const OpDef& def, const std::string& name, int replica) const {
  return def.is(kSameForms) && describe(name).persistable && !versions_.must_stay(name, replica);
}

int ReplicaNodes::last_node_that_writes(int var) const {
  int i = static_cast<int>(graph_.nodes.size()) - 1;
  for (; i > 0; --i) {
    const auto writes = graph_.writes(graph_.nodes[i]);
    if (std::find(writes.begin(), writes.end(), var) != writes.end()) break;
  }
  return i;
}

}  // namespace anabranch
