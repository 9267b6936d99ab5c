// The ops that take the place of a recurrence and of its gradient, from what was found of its cell and the variables of
// the graph that stand for it.
#pragma once
#include <vector>

#include "graph/edit.h"
#include "graph/passes/patterns/recurrent_cell.h"

namespace anabranch {

struct CellVars {
  int x = -1, mask = -1;
  bool sequences = false;  // x holds them: [rows, I]
  bool guarded = false;    // some of the ops it takes the place of are to run on the CPU
  std::vector<int> first_states, weights, biases;
  std::vector<int> values, for_gradient;  // what the op makes, as in RecurrentCell
};

struct CellGradients {
  std::vector<std::vector<int>> given;  // gradients of each of the values
  int x = -1;                           // what is wanted; -1: it is not
  std::vector<int> first_states, weights, biases;
};

// device_guard("cpu") is around the node that runs a block, or around some of the ops of that.
bool is_guarded(const GraphNode& node, const ir::Program& program);
// Why these variables do not fit; empty when they do.
std::string misfit(const Graph& graph, const CellVars& vars);
// Values that are not there yet, and those for the gradient, as new variables. like: one with that replica and kind.
void add_values(Graph& graph, const RecurrentCell& cell, int replica, int like, CellVars* vars);
GraphNode cell_node(const Graph& graph, const GraphNode& like, const RecurrentCell& cell, const CellVars& vars);
// role_vars: op_role_var of the nodes it takes the place of.
GraphNode cell_gradient_node(const Graph& graph, const GraphNode& like, const RecurrentCell& cell, const CellVars& vars,
                             const CellGradients& gradients, std::vector<std::string> role_vars);

// The node that runs the gradient of the block of this one; -1 when there is none. Why it cannot go away together with
// this one; empty when it can.
std::string find_block_gradient(const Graph& graph, const Uses& uses, const ir::Program& program, int at,
                                int* gradient);
// Where the gradient op at this place makes `made` as the gradient of this name: `made` itself, or where there is some
// of the gradient before (opdef/sums_of_turns.h), a part of it, which is added behind it.
int part_of_gradient(Graph& graph, GraphEdit& edit, int at, const std::string& of, int made);

}  // namespace anabranch
