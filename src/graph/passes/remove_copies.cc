// Ops that only copy - assign, scale by 1 - vanish: readers of the copy read the original instead. Not when the
// original is written later, or the copy is kept, fetched or read by a sub-block, or by the op of one, which may know
// variables of the block by the names of its arguments. A cast is none: what is fed, and what is made of it, may have
// another dtype than it is declared with.
#include <algorithm>

#include "graph/edit.h"
#include "graph/passes/passes.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

bool copies(const Graph& graph, const GraphNode& node) {
  if (!find_op(node.op->type).copies(*node.op)) return false;
  const int x = input_var(node, "X"), out = output_var(node, "Out");
  return x >= 0 && out >= 0 && graph.vars[x].desc.dtype == graph.vars[out].desc.dtype;
}

bool holds_rows(const ir::Var& desc) { return desc.kind == VarKind::kLoDTensor || desc.kind == VarKind::kSelectedRows; }

// Whether everybody who reads `out`, made of `x` by node i, may read `x` instead.
bool replaceable(const Graph& graph, const Uses& uses, int i, int x, int out) {
  const GraphVar &from = graph.vars[x], &to = graph.vars[out];
  if (x == out || to.desc.persistable || to.fed || to.fetched || from.replica != to.replica) return false;
  if (from.desc.kind != to.desc.kind || !holds_rows(to.desc) || uses.writer(out) != i) return false;
  const auto& writers = uses.writers(x);
  if (!writers.empty() && writers.back() >= i) return false;
  return std::none_of(uses.readers(out).begin(), uses.readers(out).end(),
                      [&](int r) { return r < i || find_op(graph.nodes[r].op->type).has(kRunsBlock); });
}

int run(Graph& graph, const PassContext&) {
  int removed = 0;
  GraphEdit edit(graph);
  std::vector<int> original(graph.vars.size(), -1);  // of removed copies
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    GraphNode& node = graph.nodes[i];
    for (int v : std::vector<int>(node.ins)) {
      if (v >= 0 && original[v] >= 0) read_instead(graph, node, v, original[v]);
    }
    if (!copies(graph, node)) continue;
    const int x = input_var(node, "X"), out = output_var(node, "Out");
    if (x < 0 || out < 0 || !replaceable(graph, edit.uses, static_cast<int>(i), x, out)) continue;
    original[out] = x;
    edit.remove(static_cast<int>(i));
    ++removed;
  }
  edit.commit();
  return removed;
}

}  // namespace

const Pass kRemoveCopies = {.name = "remove_copies",
                            .what = "readers of a copy read the original instead",
                            .tolerance = "equal; a zero that was multiplied by 1 keeps its sign",
                            .in_bodies = true,
                            .on_devices = true,
                            .run = run};

}  // namespace anabranch
