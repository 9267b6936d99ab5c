// Transposes that bring the heads of an attention before its rows: fused_attention and its gradient do without.
#pragma once
#include "graph/edit.h"

namespace anabranch {

// How many transposes before and behind this node, with those of its gradient, it takes in; 0 when it is another op.
int take_in_turned_heads(Graph& graph, GraphEdit& edit, int node);

}  // namespace anabranch
