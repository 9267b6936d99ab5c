// Who reads and who writes the variables of a graph, and an edit that puts one node in the place of several. For
// passes.
#pragma once
#include <string>
#include <vector>

#include "graph/graph.h"

namespace anabranch {

// The variable in a slot that holds exactly one; -1 otherwise.
int input_var(const GraphNode& node, const std::string& slot);
int output_var(const GraphNode& node, const std::string& slot);

// As the graph was when this was made: nodes by their place in it, each once, ascending.
class Uses {
 public:
  explicit Uses(const Graph& graph);
  const std::vector<int>& readers(int var) const { return readers_[var]; }
  const std::vector<int>& writers(int var) const { return writers_[var]; }
  // The one node that writes `var`, or the one that reads it; -1 when there are none or several.
  int writer(int var) const { return writers_[var].size() == 1 ? writers_[var][0] : -1; }
  int reader(int var) const { return readers_[var].size() == 1 ? readers_[var][0] : -1; }

 private:
  std::vector<std::vector<int>> readers_, writers_;
};

// Nodes are replaced by their places in the graph as it was at the beginning; the graph changes at commit().
class GraphEdit {
 public:
  explicit GraphEdit(Graph& graph) : uses(graph), graph_(graph), gone_(graph.nodes.size(), 0) {}

  const Uses uses;
  bool gone(int node) const { return gone_[node] != 0; }
  // Nobody sees the variable but one writer and one reader: a fused node need not make it.
  bool is_private(int var) const;
  // Whether the nodes `parts` (ascending) may become one in the place of the first of them: nothing between writes what
  // the later ones touch, or reads what they write.
  bool may_gather(const std::vector<int>& parts) const;
  // `node` takes the place of the first part; it stands for all of them in messages.
  void replace(const std::vector<int>& parts, GraphNode node);
  void remove(int node) { gone_[node] = 1; }
  void commit();

 private:
  Graph& graph_;
  std::vector<char> gone_;
};

}  // namespace anabranch
