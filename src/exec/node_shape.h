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
  int place = 0;        // of the op in its block; not those of other blocks
  RuntimeShapes::Places places = {};
  bool on_device = false;
  bool initializes = false;  // what it makes persists, and the program has a seed: it draws the same in each run
};

ShapeFn make_shape_fn(const NodeFactory& factory);
// The key of an op that draws: its own seed or else that of the program (or the process), and its number in the
// program. Ops of files that others wrote have no number; their place stands for it.
RandomKey random_key(const NodeFactory& node);

}  // namespace anabranch
