// fuse_all_optimizer_ops: updates with the same rule and numbers become one node, which loops over all of their
// elements: a small parameter costs no hand-off, a large one is shared by all threads. A rule participates if an op
// `fused_<rule>` is declared, which has the slots of the rule as lists. Sparse gradients and float64 keep their nodes.
#include <algorithm>
#include <map>
#include <set>

#include "graph/edit.h"
#include "graph/passes/passes.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

const OpDef* fused_form(const GraphNode& node) {
  if (!(node.role() & ir::role::kOptimize) || !is_plain(node)) return nullptr;
  return find_op_or_null("fused_" + node.op->type);
}

bool one_argument_each(const std::vector<ir::Slot>& slots, const std::vector<SlotDef>& needed) {
  const auto given = [](const ir::Slot& s) { return !s.args.empty() && s.args[0] != ir::kEmptyVar; };
  const auto is_needed = [&](const ir::Slot& s) {
    return std::any_of(needed.begin(), needed.end(), [&](const SlotDef& d) { return d.name == s.name; });
  };
  const auto optional = std::count_if(needed.begin(), needed.end(), [](const SlotDef& d) { return d.optional; });
  size_t found = 0;
  for (const ir::Slot& s : slots) {
    if (is_needed(s) ? s.args.size() != 1 || !given(s) : given(s)) return false;
    found += is_needed(s);
  }
  return found == needed.size() - static_cast<size_t>(optional);
}

// Dense float32 throughout, one argument per slot, every output in the memory of its input.
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

// Updates that may share a node, and the variables they use.
struct Updates {
  std::vector<GraphNode> members;
  std::set<int> reads, writes;
};

bool disturbs(const Graph& graph, const GraphNode& node, const Updates& group) {
  const auto in = [](const std::set<int>& s) { return [&s](int v) { return s.count(v) != 0; }; };
  const auto reads = graph.reads(node), writes = graph.writes(node);
  return std::any_of(reads.begin(), reads.end(), in(group.writes)) ||
         std::any_of(writes.begin(), writes.end(), in(group.writes)) ||
         std::any_of(writes.begin(), writes.end(), in(group.reads));
}

GraphNode merge(const Graph& graph, const std::vector<GraphNode>& members, const OpDef& fused) {
  NodeBuilder builder(graph, fused.type(), members[0]);
  builder.copy_all();
  for (const bool input : {true, false}) {
    for (const SlotDef& slot : input ? fused.inputs() : fused.outputs()) {
      if (slot.optional) continue;
      std::vector<int> vars;
      for (const GraphNode& m : members) vars.push_back((input ? input_var : output_var)(m, slot.name));
      input ? builder.in(slot.name, std::move(vars)) : builder.out(slot.name, std::move(vars));
    }
  }
  std::vector<std::string> pairs;
  for (const GraphNode& m : members) {
    for (const auto& [param, grad] : m.op->role_vars()) pairs.insert(pairs.end(), {param, grad});
  }
  GraphNode node = builder.attr("op_role_var", std::move(pairs)).done();
  for (const GraphNode& m : members) {
    node.tokens.insert(node.tokens.end(), m.tokens.begin(), m.tokens.end());
    node.parts.push_back({m.index, m.op});
  }
  return node;
}

// The common properties of a group: replica, rule, and the values of the rule's attributes.
std::string key_of(const GraphNode& node, const OpDef& fused) {
  std::string key = fmt::format("{} {}", node.replica, fused.type());
  for (const AttrDef& attr : fused.attrs()) {
    key.append(" ").append(node.op->has_attr(attr.name) ? attr_str(node.op->attrs.at(attr.name)) : "default");
  }
  return key;
}

class OptimizerFuser {
 public:
  explicit OptimizerFuser(Graph& graph) : graph_(graph) {}

  int run() {
    for (GraphNode& node : graph_.nodes) {
      const OpDef* fused = fused_form(node);
      const bool joins = fused && fits(graph_, node, *fused);
      const std::string key = joins ? key_of(node, *fused) : "";
      // A group ends before the first node that reads its outputs or writes its variables.
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
  using Open = std::map<std::string, Updates>;

  void add(Updates& group, GraphNode node) {
    for (int v : graph_.reads(node)) group.reads.insert(v);
    for (int v : graph_.writes(node)) group.writes.insert(v);
    group.members.push_back(std::move(node));
  }

  Open::iterator close(Open::iterator it) {
    std::vector<GraphNode>& members = it->second.members;
    if (members.size() > 1) {
      fused_ += static_cast<int>(members.size());
      out_.push_back(merge(graph_, members, *fused_form(members[0])));
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

int fuse_optimizers(Graph& graph, const PassContext&) { return OptimizerFuser(graph).run(); }

// Updates that do not wait for the backward part would wait for each other's gradients.
const char* why_not_fused(const PassContext& c) {
  const bool chosen = c.build.fuse_all_optimizer_ops.has_value();
  return chosen || c.build.enable_backward_optimizer_op_deps ? nullptr : "enable_backward_optimizer_op_deps is False";
}

}  // namespace

const Pass kFuseOptimizers = {.name = "fuse_optimizers",
                              .what = "fuses the updates of all parameters with the same rule",
                              .tolerance = "bit-equal",
                              .needs = AB_SWITCH(fuse_all_optimizer_ops),
                              .on_devices = true,
                              .skip = why_not_fused,
                              .run = fuse_optimizers};

}  // namespace anabranch
