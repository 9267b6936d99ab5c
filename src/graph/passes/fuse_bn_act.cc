// batch_norm and the relu after it become fused_batch_norm_act, and their gradients fused_batch_norm_act_grad. A
// normalised value that is fetched, or that somebody else reads, keeps the ops apart.
#include "graph/edit.h"
#include "graph/passes/passes.h"

namespace anabranch {
namespace {

// The normalisation as another op, with another variable in one of its slots.
NodeBuilder retyped(const Graph& graph, const char* type, const GraphNode& norm, std::string_view slot, int var) {
  NodeBuilder node(graph, type, norm);
  node.copy_all();
  const auto vars = [&](const ir::Slot& s, std::span<const int> now) {
    return s.name == slot ? std::vector<int>{var} : std::vector<int>(now.begin(), now.end());
  };
  for (const ir::Slot& s : norm.op->inputs) node.in(s.name, vars(s, input_vars(norm, s.name)));
  for (const ir::Slot& s : norm.op->outputs) node.out(s.name, vars(s, output_vars(norm, s.name)));
  return node;
}

// Both nodes are of one replica, the value between them is theirs alone, and the second can run in the first's place.
bool joins(const Graph& graph, const GraphEdit& edit, int first, int second, int between) {
  return is_float(graph, between) && edit.uses.is_private(between) && first < second && !edit.gone(second) &&
         graph.nodes[first].replica == graph.nodes[second].replica && is_plain(graph.nodes[first]) &&
         is_plain(graph.nodes[second]) && edit.may_gather({first, second});
}

bool fuse_forward(const Graph& graph, GraphEdit& edit, int i) {
  const GraphNode& norm = graph.nodes[i];
  const int y = output_var(norm, "Y");
  if (norm.op->type != "batch_norm" || y < 0) return false;
  const int next = edit.uses.reader(y);
  if (next < 0 || graph.nodes[next].op->type != "relu") return false;
  const int out = output_var(graph.nodes[next], "Out");
  if (out < 0 || !joins(graph, edit, i, next, y)) return false;
  edit.replace({i, next}, retyped(graph, "fused_batch_norm_act", norm, "Y", out).done());
  return true;
}

bool fuse_backward(const Graph& graph, GraphEdit& edit, int i) {
  const GraphNode& act = graph.nodes[i];
  if (act.op->type != "relu_grad") return false;
  const int out = input_var(act, "Out"), dout = input_var(act, "Out@GRAD"), dy = output_var(act, "X@GRAD");
  const int next = dy < 0 ? -1 : edit.uses.reader(dy);
  if (out < 0 || dout < 0 || next < 0 || graph.nodes[next].op->type != "batch_norm_grad") return false;
  const GraphNode& norm = graph.nodes[next];
  if (input_var(norm, "Y@GRAD") != dy || !joins(graph, edit, i, next, dy)) return false;
  NodeBuilder node = retyped(graph, "fused_batch_norm_act_grad", norm, "Y@GRAD", dout);
  edit.replace({i, next}, node.in("Y", out).done());
  return true;
}

int run(Graph& graph, const PassContext&) {
  GraphEdit edit(graph);
  int fused = 0;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    if (!edit.gone(i)) fused += fuse_forward(graph, edit, i) || fuse_backward(graph, edit, i);
  }
  edit.commit();
  return fused;
}

}  // namespace

const Pass kFuseBnAct = {.name = "fuse_bn_act",
                         .what = "batch_norm takes in the relu after it",
                         .tolerance = "bit-equal",
                         .needs = AB_SWITCH(fuse_bn_act_ops),
                         .in_bodies = true,
                         .run = run};

}  // namespace anabranch
