// Recognizes a step of a recurrence as LSTM, GRU or simple cell, with the attributes of the op that replaces all steps.
#pragma once
#include <string>
#include <vector>

#include "graph/pass.h"
#include "graph/passes/patterns/gate_sums.h"

namespace anabranch {

// Names are those of the step.
struct RecurrentCell {
  std::string why;                  // why it is not one; empty if it is
  const char *what = "", *op = "";  // for explain(), and the op for all steps
  std::string x, mask;              // the mask: empty if there is none
  std::vector<std::string> weights, biases;
  std::vector<std::pair<std::string, Attr>> attrs;
  std::vector<size_t> memories;           // the memories that are states
  std::vector<const char*> first_states;  // slots: the states before the first step, in that order
  std::vector<const char*> values;        // the new value of each state, and its masked value if there is a mask
  std::vector<const char*> for_gradient;  // other outputs, which the gradient reads
  std::vector<size_t> shows;              // the value that each output of the step shows
};

RecurrentCell match_cell(const StepView& view);

// For the passes that replace steps by such an op.
inline constexpr const char* kCellTolerance = "sums in a different order: 1e-6 of their size";
const char* skip_cells(const PassContext& context);

// Requirements of the kinds of cells. before: the states at the start of a step; after: at its end.
struct CellStates {
  std::vector<std::string> before, after;
  std::string x;
};
bool match_lstm(StepOps& ops, const CellStates& states, RecurrentCell* cell);
bool match_gru(StepOps& ops, const CellStates& states, RecurrentCell* cell);
bool match_simple(StepOps& ops, const CellStates& states, RecurrentCell* cell);

}  // namespace anabranch
