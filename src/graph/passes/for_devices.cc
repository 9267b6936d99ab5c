#include "graph/passes/for_devices.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "graph/edit.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

Meta meta_of(const ir::Var& desc) {
  Meta m;
  m.kind = desc.kind;
  m.shape = desc.shape;
  m.dtype = desc.dtype;
  m.lod_level = desc.lod_level;
  return m;
}

class Describer {
 public:
  Describer(Graph& graph, const ir::Block& block)
      : graph_(graph), block_(block), open_(graph.vars.size(), 0), produced_(graph.vars.size(), 0) {}

  void run() {
    for (const GraphNode& node : graph_.nodes) note_produced(node);
    bool any = false;
    for (size_t v = 0; v < open_.size(); ++v) any |= begin(static_cast<int>(v));
    if (!any) return;
    for (const GraphNode& node : graph_.nodes) {
      const auto writes = graph_.writes(node);
      const auto is_open = [&](int v) { return open_[static_cast<size_t>(v)] != 0; };
      if (is_plain(node) && std::any_of(writes.begin(), writes.end(), is_open)) describe_outputs(node);
    }
  }

 private:
  void note_produced(const GraphNode& node) {
    const auto reads = graph_.reads(node);
    const bool runs_block = find_op(node.op->type).has(kRunsBlock);
    for (const int v : graph_.writes(node)) {
      if (runs_block) in_blocks_.insert(graph_.vars[v].name);
      if (std::find(reads.begin(), reads.end(), v) == reads.end()) produced_[static_cast<size_t>(v)] = 1;
    }
  }

  // The first of several versions has the declaration from before the program.
  bool begin(int v) {
    const GraphVar& var = graph_.vars[v];
    const bool several = var.version > 0 || graph_.find(var.name, var.replica) != v;
    if (!several || var.desc.kind != VarKind::kRaw || in_blocks_.count(var.name) != 0) return false;
    open_[v] = 1;
    const auto declared = block_.find_var_recursive(var.name);
    const bool given = var.version == 0 && (var.fed || var.desc.persistable || !produced_[v]);
    if (!declared || !given) return true;
    Meta m = meta_of(*declared);
    if (!declared->earlier.empty()) {
      m.shape = declared->earlier[0].shape;
      m.dtype = declared->earlier[0].dtype;
    }
    settle(v, m);
    return true;
  }

  void settle(int v, const Meta& m) {
    ir::Var& desc = graph_.vars[v].desc;
    desc.kind = m.kind;
    desc.shape = m.shape;
    desc.dtype = m.dtype;
    desc.lod_level = m.lod_level;
    open_[v] = 0;
  }

  void settle_outputs(const GraphNode& node, const std::vector<Meta>& metas) {
    for (size_t i = 0; i < node.outs.size(); ++i) {
      const int v = node.outs[i];
      if (v >= 0 && open_[v] && metas[i].shape.rank() > 0) settle(v, metas[i]);
    }
  }

  void describe_outputs(const GraphNode& node) {
    for (const int v : node.ins) {
      if (v >= 0 && open_[v]) return;
    }
    if (node.op->type == "copy_value") {
      return settle_outputs(node, {meta_of(graph_.vars[node.ins[0]].desc)});
    }
    const OpDef& def = find_op(node.op->type);
    if (def.is_dynamic(*node.op) || def.has(kKeepsOutputs)) return;
    InferContext c(def, *node.op, /*runtime=*/false);
    for (size_t i = 0; i < node.ins.size(); ++i) {
      if (node.ins[i] >= 0) c.ins[i] = meta_of(graph_.vars[node.ins[i]].desc);
    }
    for (size_t i = 0; i < node.outs.size(); ++i) {
      if (node.outs[i] >= 0) c.outs[i] = declared_as(node.outs[i]);
    }
    try {
      def.run_infer(c);
    } catch (const Error&) {
      return;  // the op reports the error where it runs
    }
    settle_outputs(node, c.outs);
  }

  Meta declared_as(int v) const {
    const auto declared = open_[v] ? block_.find_var_recursive(graph_.vars[v].name) : nullptr;
    return meta_of(declared ? *declared : graph_.vars[v].desc);
  }

  Graph& graph_;
  const ir::Block& block_;
  std::vector<char> open_;  // values of which nothing is known yet
  std::vector<char> produced_;
  std::set<std::string> in_blocks_;  // variables that sub-blocks write in any form
};

}  // namespace

void describe_versions(Graph& graph, const ir::Block& block) { Describer(graph, block).run(); }

void settle_copies(Graph& graph) {
  const Uses uses(graph);
  const auto is_tensor = [&](int v) {
    const ir::Var& desc = graph.vars[v].desc;
    return desc.kind == VarKind::kLoDTensor && desc.shape.rank() > 0;
  };
  for (GraphNode& node : graph.nodes) {
    if (node.op->type != "copy_value") continue;
    const int from = node.ins[0], to = node.outs[0], writer = uses.writer(from);
    if (writer < 0 || graph.vars[from].dynamic || !graph.vars[from].produced) continue;
    const GraphNode& made_by = graph.nodes[writer];
    const OpDef& def = find_op(made_by.op->type);
    if (!is_plain(made_by) || def.has(kKeepsOutputs) || def.has(kMaybeUnset)) continue;
    if (is_tensor(from) && is_tensor(to)) node = NodeBuilder(graph, "assign", node).in("X", from).out("Out", to).done();
  }
}

void fuse_squares_of_rows(Graph& graph) {
  GraphEdit edit(graph);
  const auto made_by = [&](int v, const char* type) {
    const int node = v < 0 ? -1 : edit.uses.writer(v);
    return node >= 0 && graph.nodes[node].op->type == type ? node : -1;
  };
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const GraphNode& sum = graph.nodes[i];
    const int out = sum.op->type == "reduce_sum" ? output_var(sum, "Out") : -1;
    if (out < 0 || !(graph.vars[out].desc.shape == Shape{1})) continue;
    const int squares = input_var(sum, "X"), square = made_by(squares, "square");
    if (square < 0 || !edit.uses.is_private(squares)) continue;
    if (graph.vars[out].desc.dtype != graph.vars[squares].desc.dtype) continue;  // out_dtype
    const int values = input_var(graph.nodes[square], "X"), taken = made_by(values, "get_tensor_from_selected_rows");
    if (taken < 0 || !edit.uses.is_private(values)) continue;
    const int rows = input_var(graph.nodes[taken], "X");
    // Padding after merged rows is zero; other padding may be anything.
    if (made_by(rows, "merge_selected_rows") < 0 || !edit.may_gather({taken, square, i})) continue;
    edit.replace({taken, square, i}, NodeBuilder(graph, "squares_of_rows", sum).in("X", rows).out("Out", out).done());
  }
  edit.commit();
  settle_dynamic(graph);
}

}  // namespace anabranch
