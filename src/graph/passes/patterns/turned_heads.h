// Transposes that move the heads of an attention before its rows: fused_attention and its gradient make them redundant.
#pragma once
#include "graph/edit.h"

namespace anabranch {

// Number of transposes before and after this node, with those of its gradient, that were fused; 0 for another op.
int take_in_turned_heads(Graph& graph, GraphEdit& edit, int node);

}  // namespace anabranch
