#include "graph/passes/patterns/transposed_heads.h"

#include <algorithm>
#include <memory>
#include <string>

namespace anabranch {
namespace heads {
namespace {

enum Name { kShape };
enum Part { kAttention, kTranspose };

// The value may be computed earlier than before: by another node, in the same run.
bool is_written_once(const Match& m, int var) {
  return m.uses().writer(var) >= 0 && !m.graph().vars[var].desc.persistable;
}

bool exchanges_heads(const Match&, const GraphNode& transpose) {
  return transpose.op->attr<std::vector<int32_t>>("axis") == std::vector<int32_t>{0, 2, 1, 3};
}

// Another slot of the attention may hold the same variable.
bool is_read_once(const Match& m, const GraphNode&) {
  const auto& ins = m.node(kAttention)->ins;
  return is_float(m.graph(), m.end()) && m.uses().is_inner(m.end()) &&
         std::count(ins.begin(), ins.end(), m.result(kTranspose)) == 1;
}

OpPattern transpose() {
  return op("transpose2").reads("X").inner("XShape", kShape).makes("Out").when(exchanges_heads, "it moves other axes");
}

Pattern before(const char* slot) {
  return up(op("fused_attention").reads(slot).makes("Out").may_end_gradient())
      .then(transpose().when(is_read_once, "its operand is not a temporary for one slot"))
      .in_place()
      .with_gradient();
}

Pattern after() { return down(op("fused_attention").makes("Out")).then(transpose()).in_place().with_gradient(); }

// The node reads or computes `to` instead of `from`, with the heads last.
void change(Graph& graph, const GraphNode* of, int from, int to, const char* attr) {
  GraphNode& node = graph.nodes[static_cast<size_t>(of - graph.nodes.data())];
  auto op = std::make_shared<ir::Op>(*node.op);
  const auto exchange = [&](std::vector<ir::Slot>& slots, std::vector<int>& vars) {
    auto var = vars.begin();
    for (ir::Slot& slot : slots) {
      for (std::string& arg : slot.args) {
        if (*var++ != from) continue;
        *(var - 1) = to;
        arg = graph.vars[to].name;
      }
    }
  };
  exchange(op->inputs, node.ins);
  exchange(op->outputs, node.outs);
  op->attrs[attr] = true;
  node.op = std::move(op);
}

bool remove_before(Graph& graph, GraphEdit& edit, const Match& m, const char* attr) {
  const GraphNode *grad = m.gradient_node(kAttention), *transposed = m.gradient_node(kTranspose);
  if (transposed && (!exchanges_heads(m, *transposed) || !is_written_once(m, m.end_gradient()))) return false;
  const int var = m.result(kTranspose);
  change(graph, m.node(kAttention), var, m.end(), attr);
  if (grad) change(graph, grad, var, m.end(), attr);
  if (transposed) change(graph, grad, input_var(*transposed, "Out@GRAD"), m.end_gradient(), attr);
  for (const GraphNode* gone : {m.node(kTranspose), transposed}) {
    if (gone) edit.remove(static_cast<int>(gone - graph.nodes.data()));
  }
  return true;
}

bool remove_after(Graph& graph, GraphEdit& edit, const Match& m) {
  const GraphNode *grad = m.gradient_node(kAttention), *transposed = m.gradient_node(kTranspose);
  const bool trains = output_var(*m.node(kAttention), "Softmax") >= 0;
  if (trains != m.has_gradient() || !is_written_once(m, m.end())) return false;
  if (trains && (!exchanges_heads(m, *transposed) || m.uses().writer(m.result_gradient()) < 0)) return false;
  change(graph, m.node(kAttention), m.result(kAttention), m.end(), "out_heads_last");
  if (trains) change(graph, grad, output_var(*transposed, "X@GRAD"), m.result_gradient(), "out_heads_last");
  for (const GraphNode* gone : {m.node(kTranspose), transposed}) {
    if (gone) edit.remove(static_cast<int>(gone - graph.nodes.data()));
  }
  return true;
}

}  // namespace
}  // namespace heads

int fuse_transposed_heads(Graph& graph, const PassContext& context) {
  static const Pattern q = heads::before("Q"), k = heads::before("K"), v = heads::before("V"), out = heads::after();
  const auto before = [&](const char* attr) {
    return [&graph, attr](GraphEdit& edit, const Match& m) { return heads::remove_before(graph, edit, m, attr); };
  };
  return fuse(graph, context,
              {{q, before("q_heads_last")},
               {k, before("k_heads_last")},
               {v, before("v_heads_last")},
               {out, [&](GraphEdit& edit, const Match& m) { return heads::remove_after(graph, edit, m); }}});
}

}  // namespace anabranch
