// Transposes that move the heads of an attention before its rows: fused_attention and its gradient make them redundant.
#pragma once
#include "graph/edit.h"

namespace anabranch {

// Number of transposes before and after this node, with those of its gradient, that were fused; 0 for another op.
int fuse_transposed_heads(Graph& graph, GraphEdit& edit, int node);

}  // namespace anabranch
