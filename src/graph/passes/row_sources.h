// Where the unknown number of rows of a variable comes from: variables with one source have as many rows as each other
// in every run. For passes that rely on shapes being equal at run time, and not in the declaration alone, where an
// extent that is unknown stands for any number.
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
  // Equal declared shapes that stay equal whatever is fed.
  bool same_shape(int a, int b) const;
  // Tensors without sequences that have one dtype and, whatever is fed, one shape.
  bool alike(int a, int b) const;

 private:
  int of_gradient(int var) const;
  int of_inputs(const GraphNode& node, int out) const;

  const Graph& graph_;
  std::vector<int> source_;                             // by variable: the one that it has its rows from
  std::map<std::pair<std::string, int>, int> of_name_;  // and by name and replica, -1 where its versions differ
};

}  // namespace anabranch
