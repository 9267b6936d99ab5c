// The gradient block of a loop over the steps of sequences: checks that it is the one of append_backward, and assigns
// its ops to those of the loop.
#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/passes/patterns/block_gradient.h"
#include "graph/passes/patterns/sequence_iteration.h"

namespace anabranch {

class SequenceIterationGradient {
 public:
  // given: arrays of outputs with a gradient, and the gradient.
  SequenceIterationGradient(const SequenceIteration& iteration, const ir::Block& gradient,
                            const std::map<std::string, int>& given);
  // The reason why it computes something else; empty if it is the one of append_backward.
  const std::string& why() const { return why_; }
  // Whether the gradient block computes the whole gradient of an outer variable that the cell reads.
  bool makes(const std::string& name) const { return check_.is_gradient(ir::grad_name(name), name); }
  // Whether it adds to the gradient of the array of an input.
  bool adds_to(const std::string& array) const { return !gradient_read(array).empty(); }
  // The gradient taken from that of an array which the iteration writes; empty if there is none.
  std::string taken_from(const std::string& array) const;
  struct Part {
    BlockGradient::Ops ops;
    std::vector<std::pair<std::string, std::string>> made;  // gradients of other ops' results, and the results
  };
  // Of the ops of the cell at these places.
  Part part(const SequenceIteration& iteration, const std::set<size_t>& places) const;

 private:
  struct Sorted {
    BlockGradient::Ops plain;                                 // of the cell
    BlockGradient::Seeds seeds;                               // from arrays that the iteration writes
    std::map<std::string, std::string> written;               // these arrays, and the gradient taken from them
    std::vector<std::pair<std::string, std::string>> read;    // arrays that it reads, gradients of the elements
    std::vector<std::pair<std::string, std::string>> shrunk;  // gradients of elements and of their first rows
    std::string why;
  };
  static Sorted sort(const SequenceIteration& iteration, const ir::Block& gradient);
  static bool take_write(const SequenceIteration& iteration, const ir::Op& op, Sorted* sorted);
  static bool take_read(const SequenceIteration& iteration, const ir::Op& op, Sorted* sorted);
  std::string check(const SequenceIteration& iteration, const std::map<std::string, int>& given) const;
  // The gradient of an element that is added to the array's; empty if there is none, @EMPTY@ if there are several.
  std::string gradient_read(const std::string& array) const;

  Sorted sorted_;
  BlockGradient check_;
  std::string why_;
};

}  // namespace anabranch
