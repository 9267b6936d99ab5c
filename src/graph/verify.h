// Checks the invariants of a graph before the passes, and after each pass that changes it. A violated one raises
// Internal, which names the node.
#pragma once
#include <string>
#include <unordered_set>

#include "graph/graph.h"

namespace anabranch {

// - Each op matches its declaration: slots with a legal number of arguments, the required ones, attributes with their
// types and checks; each argument has a variable. op_role_var of an op created by a pass names variables of the graph,
// or names that the program uses there.
// - A value of the graph is computed by one node, before it is read, and read before its memory holds another.
// - Variables that share memory have one kind, dtype and declared shape, and are temporaries.
// One object serves all checks of a compilation: an op that it has checked is not checked again.
class Verifier {
 public:
  void verify(const Graph& graph);

 private:
  std::unordered_set<ir::OpRef> seen_;
  std::unordered_set<std::string> named_;  // in op_role_var of the program
};

}  // namespace anabranch
