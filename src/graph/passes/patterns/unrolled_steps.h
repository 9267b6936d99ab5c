// Consecutive steps of one recurrent cell in a block, as a Python loop over layers creates them: found by the weights
// they share. Does not change the graph.
#pragma once
#include <string>
#include <vector>

#include "graph/edit.h"
#include "graph/passes/patterns/recurrent_cell.h"

namespace anabranch {

struct UnrolledStep {
  std::vector<int> nodes;  // ascending
  std::string x;
  std::vector<std::string> before, after;  // states, in the order of the cell's first states
};

struct UnrolledChain {
  RecurrentCell cell;
  std::vector<UnrolledStep> steps;
};

// Of one replica; at least two steps.
std::vector<UnrolledChain> find_unrolled(const Graph& graph, const Uses& uses, int replica);

}  // namespace anabranch
