// The source of a variable's unknown number of rows: variables with one source have equally many rows in every run. For
// passes that rely on equal shapes at run time, not only in the declaration, where an unknown extent stands for any
// number.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace anabranch {

class RowSources {
 public:
  explicit RowSources(const Graph& graph);
  // Equal declared shapes that stay equal for any feed.
  bool same_shape(int a, int b) const;
  // Tensors without sequences that have one dtype and, for any feed, one shape.
  bool alike(int a, int b) const;

 private:
  int of_gradient(int var) const;
  int of_inputs(const GraphNode& node, int out) const;

  const Graph& graph_;
  std::vector<int> source_;                             // by variable: the one that determines its rows
  std::map<std::pair<std::string, int>, int> of_name_;  // and by name and replica, -1 if its versions differ
};

}  // namespace anabranch
