// enable_backward_optimizer_op_deps: update ops wait for the whole backward part. Without it an update may start as
// soon as its gradient is complete, while other gradients are still computed. Values are the same either way; with it a
// failed step has changed fewer parameters.
#include <algorithm>
#include <string>
#include <utility>

#include "graph/edit.h"
#include "graph/ownership.h"
#include "graph/passes/passes.h"

namespace anabranch {
namespace {

GraphNode barrier(Graph& graph, const GraphNode& update, std::vector<int> gradients, int number) {
  ir::Var passed;
  passed.name = "@updates_last_" + std::to_string(number) + "@";
  passed.kind = VarKind::kRaw;
  GraphNode node = NodeBuilder(graph, "barrier", update).attr("op_role", int32_t{ir::role::kBackward}).done();
  node.index = -1;
  node.replica = 0;
  node.more_reads = std::move(gradients);
  node.more_writes = {graph.var(passed.name, 0, passed)};
  graph.vars[node.more_writes[0]].produced = true;
  return node;
}

// The gradients of parameters among a node's outputs. A barrier that read all outputs would keep the memory of the
// other gradients until the end.
void add_gradients(const Graph& graph, const GraphNode& node, std::vector<int>* gradients) {
  const auto pairs = node.op->role_vars();
  const auto is_one = [&](int v) {
    return std::any_of(pairs.begin(), pairs.end(), [&](const auto& p) { return p.second == graph.vars[v].name; });
  };
  const std::vector<int>& writes = graph.writes(node);
  const bool some = std::any_of(writes.begin(), writes.end(), is_one);
  for (int v : writes) {
    if (!some || is_one(v)) gradients->push_back(v);
  }
}

// One barrier before each run of updates: it reads every gradient written so far, and the updates depend on it.
int updates_last(Graph& graph, const PassContext&) {
  std::vector<GraphNode> nodes;
  std::vector<int> gradients;
  int passed = -1, barriers = 0;
  for (GraphNode& node : graph.nodes) {
    const bool update = is_update(*node.op) && !node.op->role_vars().empty();
    if (!update && (node.role() & ir::role::kBackward) && !node.op->role_vars().empty()) {
      add_gradients(graph, node, &gradients);
    }
    if (update && !gradients.empty()) {
      nodes.push_back(barrier(graph, node, std::exchange(gradients, {}), barriers++));
      passed = nodes.back().more_writes[0];
    }
    if (update && passed >= 0) node.more_reads.push_back(passed);
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
  return barriers;
}

}  // namespace

const Pass kUpdatesLast = {.name = "updates_last",
                           .what = "runs updates after all gradients",
                           .tolerance = "bit-equal",
                           .needs = AB_SWITCH(enable_backward_optimizer_op_deps),
                           .keeps_ops = true,
                           .run = updates_last};

}  // namespace anabranch
