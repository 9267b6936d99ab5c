// The gradient of what every turn of a loop reads: the sum over turns, in the order in which they are added. Of arrays
// it is the sum of each element.
#pragma once
#include <vector>

#include "opdef/kernel_context.h"

namespace anabranch::control {

class SumOverTurns {
 public:
  void begin() { parts_ = 0; }
  // `part` may be changed: it is made anew in each turn.
  void add(const KernelContext& c, Value& part, Value& sum);
  // Writes the sum; false when nothing has been added and nothing is known of it.
  bool finish(Value& sum);

 private:
  size_t parts_ = 0;
  std::vector<SelectedRows> rows_;  // kept apart until the end
};

}  // namespace anabranch::control
