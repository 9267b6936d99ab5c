// Prepares a graph for placement: infers what the program leaves open and declares it, so that devices can run it.
#pragma once
#include "graph/graph.h"

namespace anabranch {

// Gives each version of a variable the kind, element type and shape that follow from the op that computes it, as far as
// shape functions can tell; everything else stays unknown. CPU passes do not need this.
void describe_versions(Graph& graph, const ir::Block& block);

// Copies between versions of one variable that are known to be tensors become ops with static shapes.
void settle_copies(Graph& graph);

// The sum of squares of merged sparse rows does not need their number: it becomes one op.
void fuse_squares_of_rows(Graph& graph);

}  // namespace anabranch
