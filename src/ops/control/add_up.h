// The gradient of a variable that every iteration of a loop reads: the sum over iterations, in the order in which they
// are added. For arrays, each element has its own sum.
#pragma once
#include <vector>

#include "opdef/op_def.h"
#include "opdef/sums_of_iterations.h"

namespace anabranch::control {

// An empty sum: nothing has been added to it. It keeps its memory.
void begin_sum(Value& sum);
bool has_parts(const Value& sum);
// sum += part. Sparse rows are appended; a tensor plus sparse rows gives a tensor.
void add_part(const KernelContext& c, const Value& part, Value& sum);

// For ops with gradient blocks (opdef/sums_of_iterations.h): the slot of the sums that iterations add to, the position
// of a variable's sum in it (-1: none), and whether a variable of the block holds the sum.
void sum_slot(OpDef& def);
int sum_before(const ir::Op& op, const std::string& of);
bool sums_inside(const ir::Op& op, const std::string& of);
// Starts and finishes such a sum: iterations add to the gradient from before the loop (null: none), and the result goes
// to `to`; false if there is no result. An array is moved there and back, so it keeps its tensors: `to`, null if no
// gradient is requested, holds it while no iteration does.
void begin_inside(const Value* before, bool array, Value* to, Value& sum);
bool give_inside(Value& sum, Value& to);

class SumOverIterations {
 public:
  // before: the value that the first part is added to; null: none. It may be `sum`.
  void begin(const Value* before, Value& sum);
  // `part` may be changed: every iteration recomputes it.
  void add(const KernelContext& c, Value& part, Value& sum);
  // Writes the sum; false if nothing has been added and its shape is unknown.
  bool finish(Value& sum);

 private:
  size_t parts_ = 0;
  std::vector<SelectedRows> rows_;  // concatenated at the end
};

}  // namespace anabranch::control
