// The shape function of a plan's node: outputs get shape and memory, and the kernel is chosen by the dtypes met.
#pragma once
#include "exec/plan.h"
#include "opdef/runtime.h"

namespace anabranch {

struct NodeFactory {
  const OpDef* def;
  ir::OpRef op;
  uint64_t seed = 0;
  BlockFactory blocks;  // for control flow
};

ShapeFn make_shape_fn(const NodeFactory& factory);
uint64_t stream_of(const ir::Op& op);  // identity of the op's random numbers: the name of what it writes

}  // namespace anabranch
