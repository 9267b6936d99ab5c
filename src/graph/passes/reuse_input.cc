// enable_inplace: an output takes the memory of an input without later readers, if the op's kernel allows it
// (OpDef::may_share). The edges that order other readers before the writer follow from the shared buffer.
#include "graph/edit.h"
#include "graph/passes/passes.h"
#include "graph/passes/row_sources.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

bool temporary(const GraphVar& v) {
  return !v.desc.persistable && !v.fed && !v.fetched && !v.dynamic && v.produced && v.desc.kind == VarKind::kLoDTensor;
}

bool same_block(const ir::Var& a, const ir::Var& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.shape.rank() > 0;
}

// Operands that share memory may have different extents at run time if the declaration does not know them; then the
// result is larger than one of them.
bool operands_stay_equal(const Graph& graph, const RowSources& rows, const GraphNode& node) {
  if (!node.op->has_attr("axis") || !node.op->type.starts_with("elementwise_")) return true;
  const int x = input_var(node, "X"), y = input_var(node, "Y");
  if (x < 0 || y < 0) return false;
  return graph.vars[y].desc.shape.known() || rows.same_shape(x, y);
}

int reuse_input(Graph& graph, const PassContext& context) {
  const RowSources rows(graph);
  const Uses uses(graph);
  int shared = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    // In a block, the original ops of a node may run one after the other, and later ones read the input, too.
    if (context.block > 0 && !node.parts.empty()) continue;
    for (const auto& [in_slot, out_slot] : find_op(node.op->type).shares()) {
      const int in = input_var(node, in_slot), out = output_var(node, out_slot);
      if (in < 0 || out < 0 || in == out) continue;
      const bool fits = temporary(graph.vars[in]) && temporary(graph.vars[out]) &&
                        same_block(graph.vars[in].desc, graph.vars[out].desc) &&
                        graph.vars[in].place == graph.vars[out].place;
      // One writer each: a variable that is written again has versions that this pass does not track.
      if (!fits || uses.writer(in) < 0 || uses.writer(out) < 0) continue;
      if (uses.readers(in).back() != static_cast<int>(i) || graph.vars[out].same_buffer_as >= 0) continue;
      if (!operands_stay_equal(graph, rows, node)) continue;
      graph.vars[out].same_buffer_as = graph.buffer(in);  // the root: chains of shared buffers stay short
      ++shared;
      break;
    }
  }
  return shared;
}

}  // namespace

const Pass kReuseInput = {.name = "reuse_input",
                          .what = "stores an output in the memory of an input without later readers",
                          .tolerance = "bit-equal",
                          .needs = AB_SWITCH(enable_inplace),
                          .in_bodies = true,
                          .on_devices = true,
                          .run = reuse_input};

}  // namespace anabranch
