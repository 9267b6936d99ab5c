// batch_norm and the relu behind it become fused_batch_norm_act, and their gradients fused_batch_norm_act_grad. A
// normalised value that is fetched, or that somebody else reads, keeps the ops apart.
#include "graph/passes/passes.h"
#include "graph/uses.h"

namespace anabranch {
namespace {

bool is_plain(const GraphNode& node) { return node.more_reads.empty() && node.more_writes.empty(); }

bool is_float(const Graph& graph, int var) {
  return var >= 0 && graph.vars[var].desc.dtype == DType::kFloat32 && graph.vars[var].desc.kind == VarKind::kLoDTensor;
}

std::shared_ptr<ir::Op> retyped(const char* type, const GraphNode& norm) {
  auto op = std::make_shared<ir::Op>(*norm.op);
  op->type = type;
  return op;
}

void put(const Graph& graph, std::vector<ir::Slot>& slots, std::vector<int>& ids, const char* slot, int var) {
  size_t at = 0;
  for (ir::Slot& s : slots) {
    if (s.name == slot) {
      s.args = {graph.vars[var].name};
      ids[at] = var;
      return;
    }
    at += s.args.size();
  }
}

// Both nodes are of one replica, the value between them is theirs alone, and the second can run in the first's place.
bool joins(const Graph& graph, const GraphEdit& edit, int first, int second, int between) {
  return is_float(graph, between) && edit.is_private(between) && first < second && !edit.gone(second) &&
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
  GraphNode node;
  const auto op = retyped("fused_batch_norm_act", norm);
  node.ins = norm.ins;
  node.outs = norm.outs;
  put(graph, op->outputs, node.outs, "Y", out);
  node.op = op;
  edit.replace({i, next}, std::move(node));
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
  GraphNode node;
  const auto op = retyped("fused_batch_norm_act_grad", norm);
  node.ins = norm.ins;
  node.outs = norm.outs;
  put(graph, op->inputs, node.ins, "Y@GRAD", dout);
  op->inputs.push_back({"Y", {graph.vars[out].name}});
  node.ins.push_back(out);
  node.op = op;
  edit.replace({i, next}, std::move(node));
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

const char* skip(const PassContext& c) {
  return c.build.fuse_bn_act_ops.value_or(true) ? nullptr : "fuse_bn_act_ops is False";
}

}  // namespace

const Pass kFuseBnAct = {"fuse_bn_act", "batch_norm takes in the relu behind it", "bit-equal", skip, run};

}  // namespace anabranch
