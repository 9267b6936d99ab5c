// fuse_all_optimizer_ops: updates of one rule with the same numbers become one node, which loops over all of their
// elements: a small parameter costs no hand-off, a large one is shared by all threads. A rule takes part when an op
// `fused_<rule>` is declared: it has the slots of the rule as lists. Sparse gradients and float64 keep their nodes.
#include <algorithm>
#include <map>
#include <set>

#include "graph/passes/passes.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

const OpDef* fused_form(const GraphNode& node) {
  if (!(node.role() & ir::role::kOptimize) || !node.more_reads.empty() || !node.more_writes.empty()) return nullptr;
  return find_op_or_null("fused_" + node.op->type);
}

bool one_argument_each(const std::vector<ir::Slot>& slots, const std::vector<SlotDef>& wanted) {
  const auto given = [](const ir::Slot& s) { return !s.args.empty() && s.args[0] != ir::kEmptyVar; };
  const auto is_wanted = [&](const ir::Slot& s) {
    return std::any_of(wanted.begin(), wanted.end(), [&](const SlotDef& d) { return d.name == s.name; });
  };
  size_t found = 0;
  for (const ir::Slot& s : slots) {
    if (is_wanted(s) ? s.args.size() != 1 || !given(s) : given(s)) return false;
    found += is_wanted(s);
  }
  return found == wanted.size();
}

// Dense float32 throughout, one argument a slot, every output in the memory of its input.
bool fits(const Graph& graph, const GraphNode& node, const OpDef& fused) {
  if (!one_argument_each(node.op->inputs, fused.inputs()) || !one_argument_each(node.op->outputs, fused.outputs())) {
    return false;
  }
  for (int v : graph.reads(node)) {
    const ir::Var& desc = graph.vars[v].desc;
    if (desc.kind != VarKind::kLoDTensor || desc.dtype != DType::kFloat32) return false;
  }
  return std::all_of(node.outs.begin(), node.outs.end(),
                     [&](int v) { return std::count(node.ins.begin(), node.ins.end(), v) == 1; });
}

// Updates that may share a node, and what they touch.
struct Group {
  std::vector<GraphNode> members;
  std::set<int> reads, writes;
};

bool disturbs(const Graph& graph, const GraphNode& node, const Group& group) {
  const auto in = [](const std::set<int>& s) { return [&s](int v) { return s.count(v) != 0; }; };
  const auto reads = graph.reads(node), writes = graph.writes(node);
  return std::any_of(reads.begin(), reads.end(), in(group.writes)) ||
         std::any_of(writes.begin(), writes.end(), in(group.writes)) ||
         std::any_of(writes.begin(), writes.end(), in(group.reads));
}

void collect(const std::vector<ir::Slot>& from, const std::vector<int>& ids, std::vector<ir::Slot>& slots,
             std::vector<std::vector<int>>& by_slot) {
  size_t at = 0;
  for (const ir::Slot& s : from) {
    for (size_t i = 0; i < slots.size() && !s.args.empty(); ++i) {
      if (slots[i].name != s.name) continue;
      slots[i].args.push_back(s.args[0]);
      by_slot[i].push_back(ids[at]);
    }
    at += s.args.size();
  }
}

std::vector<int> joined(const std::vector<std::vector<int>>& by_slot) {
  std::vector<int> all;
  for (const auto& ids : by_slot) all.insert(all.end(), ids.begin(), ids.end());
  return all;
}

GraphNode merge(const std::vector<GraphNode>& members, const OpDef& fused) {
  auto op = std::make_shared<ir::Op>(*members[0].op);
  op->type = fused.type();
  op->inputs.clear();
  op->outputs.clear();
  for (const SlotDef& d : fused.inputs()) op->inputs.push_back({d.name, {}});
  for (const SlotDef& d : fused.outputs()) op->outputs.push_back({d.name, {}});
  std::vector<std::vector<int>> ins(op->inputs.size()), outs(op->outputs.size());
  std::vector<std::string> pairs;
  GraphNode node;
  for (const GraphNode& m : members) {
    collect(m.op->inputs, m.ins, op->inputs, ins);
    collect(m.op->outputs, m.outs, op->outputs, outs);
    for (const auto& [param, grad] : m.op->role_vars()) pairs.insert(pairs.end(), {param, grad});
    node.tokens.insert(node.tokens.end(), m.tokens.begin(), m.tokens.end());
    node.parts.push_back({m.index, m.op});
  }
  op->attrs["op_role_var"] = pairs;
  node.op = op;
  node.index = members[0].index;
  node.replica = members[0].replica;
  node.ins = joined(ins);
  node.outs = joined(outs);
  return node;
}

// What nodes of one group have in common: replica, rule, and the values of the rule's attributes.
std::string key_of(const GraphNode& node, const OpDef& fused) {
  std::string key = fmt::format("{} {}", node.replica, fused.type());
  for (const AttrDef& attr : fused.attrs()) {
    key += " " + (node.op->has_attr(attr.name) ? attr_str(node.op->attrs.at(attr.name)) : "default");
  }
  return key;
}

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph) {}

  int run() {
    for (GraphNode& node : graph_.nodes) {
      const OpDef* fused = fused_form(node);
      const bool joins = fused && fits(graph_, node, *fused);
      const std::string key = joins ? key_of(node, *fused) : "";
      // A group ends before the first node that reads what it writes, or writes what it touches.
      for (auto it = open_.begin(); it != open_.end();) {
        it = disturbs(graph_, node, it->second) ? close(it) : std::next(it);
      }
      if (joins) {
        add(open_[key], std::move(node));
      } else {
        out_.push_back(std::move(node));
      }
    }
    while (!open_.empty()) close(open_.begin());
    graph_.nodes = std::move(out_);
    return fused_;
  }

 private:
  using Open = std::map<std::string, Group>;

  void add(Group& group, GraphNode node) {
    for (int v : graph_.reads(node)) group.reads.insert(v);
    for (int v : graph_.writes(node)) group.writes.insert(v);
    group.members.push_back(std::move(node));
  }

  Open::iterator close(Open::iterator it) {
    std::vector<GraphNode>& members = it->second.members;
    if (members.size() > 1) {
      fused_ += static_cast<int>(members.size());
      out_.push_back(merge(members, *fused_form(members[0])));
    } else {
      out_.push_back(std::move(members[0]));
    }
    return open_.erase(it);
  }

  Graph& graph_;
  Open open_;
  std::vector<GraphNode> out_;
  int fused_ = 0;
};

int run(Graph& graph, const PassContext&) { return Fuser(graph).run(); }

const char* skip(const PassContext& c) {
  if (c.build.fuse_all_optimizer_ops)
    return *c.build.fuse_all_optimizer_ops ? nullptr : "fuse_all_optimizer_ops is False";
  // Updates that need not wait for the backward part would wait for each other's gradients.
  return c.build.enable_backward_optimizer_op_deps ? nullptr : "enable_backward_optimizer_op_deps is False";
}

}  // namespace

const Pass kFuseOptimizers = {"fuse_optimizers", "updates of one rule share a node", "bit-equal", skip, run};

}  // namespace anabranch
