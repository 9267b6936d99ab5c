// Gradients of sums and differences read the forward operands only for their shapes. If Out@GRAD has the operand's
// shape, it is read instead: the operand's memory is freed earlier - in a loop, no iteration keeps it for the gradient
// -, and its op may be fused. Values from outside have memory anyway and are read as before; if one has another shape
// than declared, so that a sum may have more rows than its operands, the step runs without passes
// (Pass::trusts_shapes).
#include <set>

#include "graph/edit.h"
#include "graph/passes/passes.h"

namespace anabranch {
namespace {

bool known(const Shape& s) {
  for (int i = 0; i < s.rank(); ++i) {
    if (s[i] == kUnknown) return false;
  }
  return true;
}

// The gradient of the operand has its sequences, which have no reader: only a product uses it, by shape.
bool without_sequences(const Graph& graph, const Uses& uses, const GraphNode& node) {
  const int dx = output_var(node, "X@GRAD");
  if (dx < 0 || !uses.is_private(dx)) return false;
  const GraphNode& reader = graph.nodes[uses.reader(dx)];
  return reader.op->type == "mul_grad" && input_var(reader, "Out@GRAD") == dx;
}

// With an extent unknown on one side only, equal shapes at compile time are equal at run time.
bool stands_for(const ir::Var& dout, const ir::Var& operand, const ir::Var& other, bool any_sequences) {
  return operand.kind == VarKind::kLoDTensor && dout.kind == operand.kind && dout.dtype == operand.dtype &&
         dout.shape == operand.shape && dout.shape.rank() > 0 && known(other.shape) &&
         (operand.lod_level == 0 || any_sequences);
}

// Tensors computed by ops of the forward block.
std::set<std::string> made_by_forward(const PassContext& context) {
  std::set<std::string> names;
  if (!context.program || context.block == 0) return names;
  const int forward = context.program->block(context.block).forward_block;
  if (forward <= 0) return names;
  const ir::Block& block = context.program->block(forward);
  for (const auto& op : block.ops()) {
    for (const auto& name : op->output_args()) {
      if (block.find_var(name)) names.insert(name);
    }
  }
  return names;
}

// The forward block keeps the shape of the variable, and reuses its memory.
bool note_shape(const Graph& graph, const Uses& uses, const std::set<std::string>& made, GraphNode& node, int var) {
  if (!uses.writers(var).empty() || !made.count(graph.vars[var].name)) return false;
  node.only_shapes.push_back(var);
  return true;
}

int shape_reads(Graph& graph, const PassContext& context) {
  const Uses uses(graph);
  const auto made = made_by_forward(context);
  int changes = 0;
  for (GraphNode& node : graph.nodes) {
    if (node.op->type != "elementwise_add_grad" && node.op->type != "elementwise_sub_grad") continue;
    const int x = input_var(node, "X"), y = input_var(node, "Y"), dout = input_var(node, "Out@GRAD");
    if (x < 0 || y < 0 || dout < 0 || x == dout) continue;
    if (y != dout) changes += note_shape(graph, uses, made, node, y);
    if (uses.writers(x).empty() && !made.count(graph.vars[x].name)) continue;
    if (!stands_for(graph.vars[dout].desc, graph.vars[x].desc, graph.vars[y].desc,
                    without_sequences(graph, uses, node))) {
      changes += note_shape(graph, uses, made, node, x);
      continue;
    }
    auto op = std::make_shared<ir::Op>(*node.op);
    op->set_input("X", {graph.vars[dout].name});
    size_t at = 0;
    for (const auto& slot : op->inputs) {
      if (slot.name == "X") node.ins[at] = dout;
      at += slot.args.size();
    }
    node.op = op;
    ++changes;
  }
  return changes;
}

}  // namespace

const Pass kShapeReads = {.name = "shape_reads",
                          .what = "frees the operands of sums early, because the gradients need only their shapes",
                          .tolerance = "bit-equal",
                          .in_bodies = true,
                          .trusts_shapes = true,
                          .on_devices = true,
                          .run = shape_reads};

}  // namespace anabranch
