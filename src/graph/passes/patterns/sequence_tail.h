// What each step of a loop over sequences makes of its states and keeps to itself or gives out, as the scores of a
// decoder: when it works row by row it can be made of all rows at once, behind the loop. Recognises, and copies ops.
#pragma once
#include <functional>
#include <set>
#include <string>

#include "graph/edit.h"
#include "graph/passes/patterns/sequence_turn.h"

namespace anabranch {

// Places, among the ops of the cell, of those from which nothing goes on to the next step.
std::set<size_t> tail_of(const SequenceTurn& turn);
// Why one of them does not work row by row on states and on what others of them make; empty when all do.
std::string misfit_of_tail(const SequenceTurn& turn, const std::set<size_t>& tail, const ir::Block& body);
// The op as a node beside `like`, with other variables in the place of its own.
GraphNode node_of_all_rows(const Graph& graph, const ir::Op& op, const GraphNode& like,
                           const std::function<int(const std::string&)>& var);

}  // namespace anabranch
