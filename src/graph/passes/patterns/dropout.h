// Dropout that is fused into another op.
#pragma once
#include "graph/edit.h"

namespace anabranch {

// Whether another op at another position would draw the same numbers: its draw number or seed decides.
inline bool draws_anywhere(const GraphNode& drop) {
  const ir::Op& op = *drop.op;
  const bool keyed = op.has_attr(ir::kDrawNumber) || op.attr<int32_t>("seed") != 0;
  return input_vars(drop, "Seed").empty() && (keyed || op.attr<bool>("is_test"));
}

// The attributes for the other op; null if nothing is dropped.
inline void tell_dropout(NodeBuilder& made, const GraphNode* drop) {
  made.attr("drops", drop != nullptr);
  if (!drop) return;
  const ir::Op& op = *drop->op;
  for (const char* name : {"dropout_prob", "is_test", "fix_seed", "seed", "dropout_implementation", ir::kDrawNumber}) {
    if (op.has_attr(name)) made.attr(name, op.attrs.at(name));
  }
}

}  // namespace anabranch
