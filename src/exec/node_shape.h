// The shape function of a plan's node: outputs get shape and memory, and the kernel is chosen by the actual dtypes.
#pragma once
#include "exec/plan.h"
#include "opdef/runtime.h"

namespace anabranch {

struct NodeFactory {
  const OpDef* def;
  ir::OpRef op;
  uint64_t seed = 0;
  BlockFactory blocks;  // for control flow
  int place = 0;        // of the op in its block, without nested blocks
  RuntimeShapes::Places places = {};
  bool on_device = false;
  bool initializes = false;  // its output persists, and the program has a seed: it draws the same numbers in each run
};

ShapeFn make_shape_fn(const NodeFactory& factory);
// The key of a random op: its own seed or that of the program (or the process), and its draw number in the program. Ops
// from other writers' files have no number; their position replaces it.
RandomKey random_key(const NodeFactory& node);

}  // namespace anabranch
