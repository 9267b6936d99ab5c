// The block of a loop over the steps of sequences, as DynamicRNN creates it: it counts the steps, reads elements of
// arrays, computes, and writes elements. Does not change the graph.
#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/passes/patterns/step_ops.h"

namespace anabranch {

struct SequenceIteration {
  struct Element {
    std::string array, value;
  };
  // The previous iteration's result for the sequences that continue.
  struct Memory {
    std::string array, element, value, made;  // element: as read; value: its first rows
  };
  std::string why;                             // why it is not one; empty if it is
  std::string count, table, bound, condition;  // of outer variables: the step's number, the order of the sequences,
                                               // the number of steps, whether another one follows
  std::vector<Element> inputs, outputs;        // elements that it reads and writes
  std::vector<Memory> memories;
  std::vector<ir::OpRef> cell;      // the ops that compute
  std::set<std::string> now, next;  // variables with the number of this step, and of the next

  StepView view(const ir::Block& body) const;  // of the cell
};

SequenceIteration read_sequence_iteration(const ir::Block& body);

}  // namespace anabranch
