// Stacked tensors of all steps, and the nodes that stack and unstack them.
#pragma once
#include <string>
#include <vector>

#include "graph/edit.h"

namespace anabranch {

class Stacks {
 public:
  // suffix: of the names of new variables.
  Stacks(Graph& graph, const Uses& uses, int replica, std::string suffix)
      : graph_(graph), uses_(uses), replica_(replica), suffix_(std::move(suffix)), known_(graph.vars.size()) {}

  // As `like`; or as `like` for this number of steps.
  int like(int like, const char* what) { return add(like, what, 0); }
  int of_steps(int like, const char* what, size_t steps) { return add(like, what, steps); }
  GraphNode stack(const std::vector<int>& parts, int to, const GraphNode& like) const;
  GraphNode unstack(int from, const std::vector<int>& parts, const GraphNode& like) const;
  // The only node of this type that has exactly these variables on one side, along the first axis; -1 if there is none.
  int reader(const char* type, const std::vector<int>& parts) const { return whole(type, parts, false); }
  int writer(const char* type, const std::vector<int>& parts) const { return whole(type, parts, true); }
  // No node computes the new variables.
  void forget() {
    for (size_t v = known_; v < graph_.vars.size(); ++v) graph_.vars[v].produced = false;
  }

 private:
  int add(int like, const char* what, size_t steps);
  int whole(const char* type, const std::vector<int>& parts, bool makes_them) const;

  Graph& graph_;
  const Uses& uses_;
  const int replica_;
  const std::string suffix_;
  const size_t known_;
};

}  // namespace anabranch
