// enable_inplace: an output takes the memory of an input that nobody reads afterwards, where the op's kernel allows it
// (OpDef::may_share). The edges that keep other readers before the writer follow from the shared buffer by themselves.
#include <unordered_map>

#include "graph/passes/passes.h"
#include "graph/row_sources.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

struct Use {
  int readers = 0, writers = 0, last_reader = -1;
};

bool temporary(const GraphVar& v) {
  return !v.desc.persistable && !v.fed && !v.fetched && !v.dynamic && v.produced && v.desc.kind == VarKind::kLoDTensor;
}

bool same_block(const ir::Var& a, const ir::Var& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.shape.rank() > 0;
}

int slot_var(const std::vector<ir::Slot>& slots, const std::vector<int>& ids, const std::string& name) {
  size_t at = 0;
  for (const auto& s : slots) {
    if (s.name == name) return s.args.size() == 1 ? ids[at] : -1;
    at += s.args.size();
  }
  return -1;
}

// Operands that are laid on each other may be of different extents at run time where the declaration does not know
// them; the result is larger than one of them then.
bool operands_stay_equal(const Graph& graph, const RowSources& rows, const GraphNode& node) {
  if (!node.op->has_attr("axis") || !node.op->type.starts_with("elementwise_")) return true;
  const int x = slot_var(node.op->inputs, node.ins, "X"), y = slot_var(node.op->inputs, node.ins, "Y");
  if (x < 0 || y < 0) return false;
  return graph.vars[y].desc.shape.known() || rows.same_shape(x, y);
}

int run(Graph& graph, const PassContext&) {
  const RowSources rows(graph);
  std::vector<Use> uses(graph.vars.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (int v : graph.reads(graph.nodes[i])) {
      ++uses[v].readers;
      uses[v].last_reader = static_cast<int>(i);
    }
    for (int v : graph.writes(graph.nodes[i])) ++uses[v].writers;
  }
  int shared = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    for (const auto& [in_slot, out_slot] : find_op(node.op->type).shares()) {
      const int in = slot_var(node.op->inputs, node.ins, in_slot);
      const int out = slot_var(node.op->outputs, node.outs, out_slot);
      if (in < 0 || out < 0 || in == out) continue;
      const bool fits = temporary(graph.vars[in]) && temporary(graph.vars[out]) &&
                        same_block(graph.vars[in].desc, graph.vars[out].desc);
      // One writer each: a variable that is written again has versions that this pass does not follow.
      if (!fits || uses[in].writers != 1 || uses[out].writers != 1) continue;
      if (uses[in].last_reader != static_cast<int>(i) || graph.vars[out].same_buffer_as >= 0) continue;
      if (!operands_stay_equal(graph, rows, node)) continue;
      graph.vars[out].same_buffer_as = graph.buffer(in);  // the root: chains of shared buffers stay short
      ++shared;
      break;
    }
  }
  return shared;
}

}  // namespace

const Pass kReuseInput = {
    "reuse_input", "outputs take the memory of inputs that nobody reads afterwards", "bit-equal",
    [](const PassContext& c) -> const char* { return c.build.enable_inplace ? nullptr : "enable_inplace is False"; },
    run};

}  // namespace anabranch
