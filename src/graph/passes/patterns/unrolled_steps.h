// Steps of one recurrent cell that stand one after another in a block, as a loop of Python over layers leaves them:
// found by the weights that they share. Recognises, changes nothing.
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

// Of one replica; two steps at least.
std::vector<UnrolledChain> find_unrolled(const Graph& graph, const Uses& uses, int replica);

}  // namespace anabranch
