// The block of a loop over the steps of sequences, as DynamicRNN leaves it: it counts the steps, reads elements of
// arrays, computes, and writes elements. Recognises, changes nothing.
#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/passes/patterns/block_gradient.h"
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

// The gradient block of such a block.
class SequenceTurnGradient {
 public:
  // given: arrays of outputs with a gradient, and that.
  SequenceTurnGradient(const SequenceTurn& turn, const ir::Block& gradient, const std::map<std::string, int>& given);
  // Why it computes something else, or more; empty when it is what append_backward makes.
  const std::string& why() const { return why_; }
  // Whether the gradient block makes the whole gradient of an outer variable that the cell reads.
  bool makes(const std::string& name) const { return check_.is_gradient(ir::grad_name(name), name); }
  // Whether it adds to the gradient of the array of an input.
  bool adds_to(const std::string& array) const { return !gradient_read(array).empty(); }
  // The gradient that is taken from that of an array which the turn writes; empty when there is none.
  std::string taken_from(const std::string& array) const;
  struct Part {
    BlockGradient::Ops ops;
    std::vector<std::pair<std::string, std::string>> made;  // gradients of what other ops make, and of what they are
  };
  // Of the ops of the cell at these places.
  Part part(const SequenceTurn& turn, const std::set<size_t>& places) const;

 private:
  struct Sorted {
    BlockGradient::Ops plain;                                 // of the cell
    BlockGradient::Seeds seeds;                               // from arrays that the turn writes
    std::map<std::string, std::string> written;               // these arrays, and what is taken from them
    std::vector<std::pair<std::string, std::string>> read;    // arrays that it reads, gradients of the elements
    std::vector<std::pair<std::string, std::string>> shrunk;  // gradients of elements and of their first rows
    std::string why;
  };
  static Sorted sort(const SequenceTurn& turn, const ir::Block& gradient);
  static bool take_write(const SequenceTurn& turn, const ir::Op& op, Sorted* sorted);
  static bool take_read(const SequenceTurn& turn, const ir::Op& op, Sorted* sorted);
  std::string check(const SequenceTurn& turn, const std::map<std::string, int>& given) const;
  // The gradient of an element that is added to the array's; empty when there is none, @EMPTY@ when there are several.
  std::string gradient_read(const std::string& array) const;

  Sorted sorted_;
  BlockGradient check_;
  std::string why_;
};

}  // namespace anabranch
