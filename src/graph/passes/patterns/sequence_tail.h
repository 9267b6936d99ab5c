// Ops of a loop over sequences that do not feed the next step, such as the scores of a decoder: if they work row by
// row, they can run once on all rows, after the loop. Recognizes them, and copies ops.
#pragma once
#include <functional>
#include <set>
#include <string>

#include "graph/edit.h"
#include "graph/passes/patterns/sequence_iteration.h"

namespace anabranch {

// Positions, among the ops of the cell, of those that do not contribute to the next step.
std::set<size_t> tail_of(const SequenceIteration& iteration);
// Why one of them does not work row by row on states and on results of the others; empty if all do.
std::string misfit_of_tail(const SequenceIteration& iteration, const std::set<size_t>& tail, const ir::Block& body);
// The op as a node next to `like`, with other variables as arguments.
GraphNode node_of_all_rows(const Graph& graph, const ir::Op& op, const GraphNode& like,
                           const std::function<int(const std::string&)>& var);

}  // namespace anabranch
