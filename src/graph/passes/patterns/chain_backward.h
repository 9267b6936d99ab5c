// Replaces the gradients of consecutive steps.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "graph/passes/patterns/cell_nodes.h"
#include "graph/passes/patterns/chain_gradient.h"
#include "graph/passes/patterns/stacks.h"

namespace anabranch {

struct ChainBackward {
  std::vector<GraphNode> nodes;  // in order
  std::set<int> gone;            // nodes that stack or unstack values that are whole afterwards
  int after = -1, before = 0;    // the positions between which they must be
};

// states: variables of all steps, for each state; xs: of x. vars: of the op that replaces the steps.
ChainBackward plan_backward(const Graph& graph, const Uses& uses, Stacks& stacks, const UnrolledChain& chain,
                            const ChainGradient& gradient, const std::vector<std::vector<int>>& states,
                            const std::vector<int>& xs, const CellVars& vars);

}  // namespace anabranch
