// Removes the transposes between [batch, rows, heads, width] and [batch, heads, rows, width] around fused_attention,
// which can read and write both layouts, as can its gradient.
#pragma once
#include "graph/match.h"

namespace anabranch {

// Removes these transposes before and after each fused_attention and its gradient. Returns the number of matches.
int fuse_transposed_heads(Graph& graph, const PassContext& context);

}  // namespace anabranch
