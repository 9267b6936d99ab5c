// Is a step of a recurrence one of long short-term memory, of a gated recurrent unit, or a simple one? What the op that
// takes the place of all steps is to be given.
#pragma once
#include <string>
#include <vector>

#include "graph/pass.h"
#include "graph/passes/patterns/gate_sums.h"

namespace anabranch {

// Names are those of the step.
struct RecurrentCell {
  std::string why;                  // why it is none; empty when it is one
  const char *what = "", *op = "";  // for explain(), and the op for all steps
  std::string x, mask;              // the mask: empty when there is none
  std::vector<std::string> weights, biases;
  std::vector<std::pair<std::string, Attr>> attrs;
  std::vector<size_t> memories;           // which of the memories are the states
  std::vector<const char*> first_states;  // slots: the states before the first step, in that order
  std::vector<const char*> values;        // what a step makes of each state, and with a mask, what that leaves
  std::vector<const char*> for_gradient;  // other outputs, which the gradient reads
  std::vector<size_t> shows;              // of each output of the step, which of the values
};

RecurrentCell match_cell(const StepView& view);

// Of the passes that put such an op in the place of steps.
inline constexpr const char* kCellTolerance = "sums in another order: 1e-6 of their size";
const char* skip_cells(const PassContext& context);

// What the kinds of cells ask for. before: the states that a step finds; after: what it makes of them.
struct CellStates {
  std::vector<std::string> before, after;
  std::string x;
};
bool match_lstm(StepOps& ops, const CellStates& states, RecurrentCell* cell);
bool match_gru(StepOps& ops, const CellStates& states, RecurrentCell* cell);
bool match_simple(StepOps& ops, const CellStates& states, RecurrentCell* cell);

}  // namespace anabranch
