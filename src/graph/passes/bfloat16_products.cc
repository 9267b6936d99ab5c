// Matrix products and 2-D convolutions, forward and backward, take operands rounded to bfloat16 where the
// processor has instructions for them. Sums, activations, gradients, and the parameters that optimizers update stay
// float32.
#include <memory>

#include "base/cpu.h"
#include "graph/passes/passes.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

bool is_product(const Graph& graph, const GraphNode& node) {
  if (!find_op(node.op->type).is(kBfloat16)) return false;
  return !node.ins.empty() && node.ins[0] >= 0 && graph.vars[node.ins[0]].desc.dtype == DType::kFloat32;
}

int bfloat16_products(Graph& graph, const PassContext&) {
  int changes = 0;
  for (GraphNode& node : graph.nodes) {
    if (!is_product(graph, node)) continue;
    auto op = std::make_shared<ir::Op>(*node.op);
    op->attrs["bfloat16"] = true;
    node.op = std::move(op);
    ++changes;
  }
  return changes;
}

const char* skip(const PassContext&) {
  return cpu_has_bfloat16() ? nullptr : "this processor has no instructions for bfloat16";
}

}  // namespace

const Pass kBfloat16Products = {.name = "bfloat16_products",
                                .what = "rounds the operands of products to bfloat16",
                                .tolerance = "relative 2^-8 per operand",
                                .needs = AB_SWITCH(use_bfloat16),
                                .skip = skip,
                                .run = bfloat16_products};

}  // namespace anabranch
