// Builds the ops that replace a recurrence and its gradient, from the analysis of its cell and the graph variables of
// its values.
#pragma once
#include <vector>

#include "graph/edit.h"
#include "graph/passes/patterns/recurrent_cell.h"

namespace anabranch {

struct CellVars {
  int x = -1, mask = -1;
  bool sequences = false;  // x holds sequences: [rows, I]
  bool guarded = false;    // some of the replaced ops must run on the CPU
  std::vector<int> first_states, weights, biases;
  std::vector<int> values, for_gradient;  // the outputs of the op, as in RecurrentCell
};

struct CellGradients {
  std::vector<std::vector<int>> given;  // gradients of each of the values
  int x = -1;                           // requested gradients; -1: not requested
  std::vector<int> first_states, weights, biases;
};

// device_guard("cpu") surrounds the node that runs a block, or some of the block's ops.
bool is_guarded(const GraphNode& node, const ir::Program& program);
// The reason why these variables do not fit; empty if they do.
std::string misfit(const Graph& graph, const CellVars& vars);
// Creates missing values, and those for the gradient, as new variables. like: one with their replica and kind.
void add_values(Graph& graph, const RecurrentCell& cell, int replica, int like, CellVars* vars);
GraphNode cell_node(const Graph& graph, const GraphNode& like, const RecurrentCell& cell, const CellVars& vars);
// role_vars: op_role_var of the replaced nodes.
GraphNode cell_gradient_node(const Graph& graph, const GraphNode& like, const RecurrentCell& cell, const CellVars& vars,
                             const CellGradients& gradients, std::vector<std::string> role_vars);

// The node that runs the gradient of this one's block; -1 if there is none. The reason why both cannot be removed
// together; empty if they can.
std::string find_block_gradient(const Graph& graph, const Uses& uses, const ir::Program& program, int at,
                                int* gradient);
// The gradient op at this position computes `made` as the gradient of this name: `made` itself, or, if there is an
// earlier gradient (opdef/sums_of_iterations.h), a term that is added to it afterwards.
int part_of_gradient(Graph& graph, GraphEdit& edit, int at, const std::string& of, int made);

}  // namespace anabranch
