// The gradient of what every turn of a loop reads: the sum over turns, in the order in which they are added. Of arrays
// it is the sum of each element.
#pragma once
#include <vector>

#include "opdef/op_def.h"
#include "opdef/sums_of_turns.h"

namespace anabranch::control {

// A sum without parts: nothing has been added to it. It keeps the memory that it has.
void begin_sum(Value& sum);
bool has_parts(const Value& sum);
// sum += part. Rows are put behind those that are there; tensors and rows give a tensor.
void add_part(const KernelContext& c, const Value& part, Value& sum);

// Of ops with gradient blocks (opdef/sums_of_turns.h): the slot of the sums that the turns add to, the place in it of
// that of a variable (-1: it has none), and whether a variable of the block holds the sum.
void sum_slot(OpDef& def);
int sum_before(const ir::Op& op, const std::string& of);
bool sums_inside(const ir::Op& op, const std::string& of);
// Such a variable before the turns, which add to what there was before (null: nothing), and what it gives to `to`
// after them; false when there is nothing to give. An array goes there and back as it is, so that its tensors stay its
// own: `to`, null where it is not wanted, holds it while the turns do not.
void begin_inside(const Value* before, bool array, Value* to, Value& sum);
bool give_inside(Value& sum, Value& to);

class SumOverTurns {
 public:
  // before: what the first part is added to; null: nothing. It may be `sum`.
  void begin(const Value* before, Value& sum);
  // `part` may be changed: it is made anew in each turn.
  void add(const KernelContext& c, Value& part, Value& sum);
  // Writes the sum; false when nothing has been added and nothing is known of it.
  bool finish(Value& sum);

 private:
  size_t parts_ = 0;
  std::vector<SelectedRows> rows_;  // kept apart until the end
};

}  // namespace anabranch::control
