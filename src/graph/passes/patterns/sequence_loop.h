// A loop over the steps of sequences in block 0, with the ops around it that convert sequences to arrays and back, and
// its gradient: all that one op over sequences can replace. Does not change the graph.
#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/passes/patterns/cell_nodes.h"
#include "graph/passes/patterns/sequence_tail.h"

namespace anabranch {

struct SequenceLoop {
  std::string why;  // why it stays unchanged; empty if it can be replaced
  RecurrentCell cell;
  CellVars vars;      // values: -1 for those without readers
  int shown = -1;     // an output
  int gradient = -1;  // the node; -1: there is none
  CellGradients gradients;
  std::set<int> gone;    // nodes that are not needed without the loop,
  std::set<int> unread;  // and nodes that others may need
  // The tail: ops on all rows, after the loop, and their gradients after the node `after`. Variables for names of the
  // block and of its gradient block; missing ones are new.
  std::vector<ir::OpRef> tail, tail_gradient;
  int after = -1;
  std::map<std::string, int> named;
  std::map<std::string, size_t> states;                         // names of the values of the cell
  std::vector<std::pair<std::string, size_t>> given;            // gradients of values from the tail
  std::vector<std::pair<std::string, std::string>> parameters;  // gradients of outer variables that it computes
  // Constants with a row for each row of the first element, which are separate variables: nodes and variables.
  std::vector<std::pair<int, int>> constants;
};

// Whether the node is a loop that reads the arrays of unpacked sequences.
bool steps_through_sequences(const Graph& graph, const Uses& uses, const GraphNode& node);
SequenceLoop find_sequence_loop(const Graph& graph, const Uses& uses, const ir::Program& program, int node);

}  // namespace anabranch
