// A loop over the steps of sequences in block 0, with the ops around it that bring sequences into arrays and back, and
// its gradient: what one op over sequences can stand for. Recognises, changes nothing.
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
  std::string why;  // why it stays as it is; empty when it need not
  RecurrentCell cell;
  CellVars vars;      // values: -1 for those that nobody reads
  int shown = -1;     // an output
  int gradient = -1;  // the node; -1: there is none
  CellGradients gradients;
  std::set<int> gone;    // nodes that nobody needs without the loop,
  std::set<int> unread;  // and those that others may need
  // What is made of all rows: behind the loop, and behind the node `behind` gradients of that. Variables for names of
  // the block and of its gradient block; those that are missing are new.
  std::vector<ir::OpRef> tail, tail_gradient;
  int behind = -1;
  std::map<std::string, int> named;
  std::map<std::string, size_t> states;                         // names of the values of the cell
  std::vector<std::pair<std::string, size_t>> given;            // gradients of values that the tail makes
  std::vector<std::pair<std::string, std::string>> parameters;  // gradients of outer variables that it makes, of which
  // Constants with a row for each row of the first element, which is a variable of its own: nodes and variables.
  std::vector<std::pair<int, int>> constants;
};

// Whether the node is a loop that reads what sequences have been taken apart to.
bool steps_through_sequences(const Graph& graph, const Uses& uses, const GraphNode& node);
SequenceLoop find_sequence_loop(const Graph& graph, const Uses& uses, const ir::Program& program, int node);

}  // namespace anabranch
