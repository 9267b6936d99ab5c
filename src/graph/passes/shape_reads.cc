// Gradients of sums and differences read the forward operands for their shapes alone. Where Out@GRAD has the operand's
// shape, it is read instead: the operand's memory is free earlier, and the op that makes it may be fused away. What
// comes from outside has memory anyway, and may have another shape than its declaration: that stays, and is looked at.
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

// With an extent unknown on one side alone, equal shapes at compile time are equal at run time.
bool stands_for(const ir::Var& dout, const ir::Var& operand, const ir::Var& other) {
  return operand.kind == VarKind::kLoDTensor && dout.kind == operand.kind && dout.dtype == operand.dtype &&
         dout.shape == operand.shape && dout.shape.rank() > 0 && known(other.shape) && operand.lod_level == 0;
}

int run(Graph& graph, const PassContext&) {
  const Uses uses(graph);
  int changes = 0;
  for (GraphNode& node : graph.nodes) {
    if (node.op->type != "elementwise_add_grad" && node.op->type != "elementwise_sub_grad") continue;
    const int x = input_var(node, "X"), y = input_var(node, "Y"), dout = input_var(node, "Out@GRAD");
    if (x < 0 || y < 0 || dout < 0 || x == dout || uses.writers(x).empty()) continue;
    if (!stands_for(graph.vars[dout].desc, graph.vars[x].desc, graph.vars[y].desc)) continue;
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
                          .what = "gradients of sums do not keep their operands",
                          .tolerance = "bit-equal",
                          .in_bodies = true,
                          .run = run};

}  // namespace anabranch
