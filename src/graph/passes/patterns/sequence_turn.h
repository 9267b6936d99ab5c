// The block of a loop over the steps of sequences, as DynamicRNN leaves it: it counts the steps, reads elements of
// arrays, computes, and writes elements. Recognises, changes nothing.
#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/passes/patterns/step_ops.h"

namespace anabranch {

struct SequenceTurn {
  struct Element {
    std::string array, value;
  };
  // What the turn before has left of those sequences that go on.
  struct Memory {
    std::string array, element, value, made;  // element: as read; value: its first rows
  };
  std::string why;                             // why it is none; empty when it is one
  std::string count, table, bound, condition;  // of outer variables: the step's number, the order of the sequences,
                                               // how many steps there are, whether another one follows
  std::vector<Element> inputs, outputs;        // what it reads and what it writes
  std::vector<Memory> memories;
  std::vector<ir::OpRef> cell;      // the ops that compute
  std::set<std::string> now, next;  // what holds the number of this step, and that of the next one

  StepView view(const ir::Block& body) const;  // of the cell
};

SequenceTurn read_sequence_turn(const ir::Block& body);

}  // namespace anabranch
