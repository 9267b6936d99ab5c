// What takes the place of the gradients of steps that stand one after another.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "graph/passes/patterns/cell_nodes.h"
#include "graph/passes/patterns/chain_gradient.h"
#include "graph/passes/patterns/stacks.h"

namespace anabranch {

struct ChainBackward {
  std::vector<GraphNode> nodes;  // in their order
  std::set<int> gone;            // nodes that put together or took apart what is whole then
  int after = -1, before = 0;    // the places between which they must stand
};

// states: variables of all steps, for each state; xs: of x. vars: of the op that takes the place of the steps.
ChainBackward plan_backward(const Graph& graph, const Uses& uses, Stacks& stacks, const UnrolledChain& chain,
                            const ChainGradient& gradient, const std::vector<std::vector<int>>& states,
                            const std::vector<int>& xs, const CellVars& vars);

}  // namespace anabranch
