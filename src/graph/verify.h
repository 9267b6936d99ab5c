// What holds for every graph, before the passes and after each of them. Internal, with the node, when it does not.
#pragma once
#include <string>
#include <unordered_set>

#include "graph/graph.h"

namespace anabranch {

// - Each op fits its declaration: slots with as many arguments as they take, those that are required, attributes with
//   their types and checks; each argument has a variable. op_role_var of an op that a pass made names variables of the
//   graph, or what the program names there.
// - A value that the graph makes is made by one node, before it is read, and read before its memory takes another.
// - Variables that share memory are of one kind, dtype and declared shape, and are temporaries.
// One object serves all checks of a compilation: an op that it has seen is not looked at again.
class Verifier {
 public:
  void verify(const Graph& graph);

 private:
  std::unordered_set<ir::OpRef> seen_;
  std::unordered_set<std::string> named_;  // in op_role_var of the program
};

}  // namespace anabranch
