// Transposes that move the heads of an attention before its rows: fused_attention and its gradient make them redundant.
#pragma once
#include "graph/match.h"

namespace anabranch {

// Those before and after each fused_attention, with those of its gradient. Returns their number.
int fuse_transposed_heads(Graph& graph, const PassContext& context);

}  // namespace anabranch
