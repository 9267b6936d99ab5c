// Removes ops that only copy - assign, scale by 1: readers of the copy read the source instead. Not if the source is
// written later, or the copy is kept, fetched or read by a sub-block, or by the op that runs one, which may refer to
// variables of the block by the names of its arguments. A cast is not a copy: a fed value, and values computed from it,
// may have another dtype than declared.
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

int remove_copies(Graph& graph, const PassContext&) {
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
    if (x < 0 || out < 0 || !may_read_instead(graph, edit.uses, static_cast<int>(i), x, out)) continue;
    original[out] = x;
    edit.remove(static_cast<int>(i));
    ++removed;
  }
  edit.commit();
  return removed;
}

}  // namespace

const Pass kRemoveCopies = {.name = "remove_copies",
                            .what = "reads the source of a copy instead of the copy",
                            .tolerance = "equal; a zero that was multiplied by 1 keeps its sign",
                            .in_bodies = true,
                            .on_devices = true,
                            .run = remove_copies};

}  // namespace anabranch
