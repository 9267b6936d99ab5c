// Before ops are placed on devices: what a program leaves open is found out, and said so that devices can do it.
#pragma once
#include "graph/graph.h"

namespace anabranch {

// Gives each value of a variable that is written again the kind, element type and shape that follow from the op that
// makes it, as far as shape functions tell; what they do not tell stays unknown. Passes of the CPU do without.
void describe_versions(Graph& graph, const ir::Block& block);

// Copies between values of one variable that are known to be tensors become ops with shapes known before they run.
void settle_copies(Graph& graph);

// The sum of the squares of merged sparse rows need not know how many there are: it becomes one op.
void fuse_squares_of_rows(Graph& graph);

}  // namespace anabranch
