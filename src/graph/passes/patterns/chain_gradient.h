// The gradient of consecutive steps: the nodes that compute it, its inputs from outside, and the outputs with other
// readers.
#pragma once
#include <map>
#include <set>
#include <string>

#include "graph/passes/patterns/block_gradient.h"
#include "graph/passes/patterns/unrolled_steps.h"

namespace anabranch {

struct ChainGradient {
  std::string why;  // why it is not that of append_backward; empty if it is, or if there is none
  std::set<int> nodes;
  BlockGradient::Seeds seeds;         // of states
  std::map<std::string, int> needed;  // of x, first states, weights and biases: the variable that others read

  int of(const std::string& name) const {
    const auto it = needed.find(name);
    return it == needed.end() ? -1 : it->second;
  }
};

// nodes: of all steps.
ChainGradient find_gradient(const Graph& graph, const Uses& uses, const UnrolledChain& chain, int replica,
                            const std::set<int>& nodes);

// By a node that is not among these, or from outside of the graph.
bool is_read_outside(const Uses& uses, int var, const std::set<int>& inside);

}  // namespace anabranch
