// h' = f(weighted sum of x and h, with biases), where f is tanh, sigmoid or relu.
#include "graph/passes/patterns/recurrent_cell.h"

namespace anabranch {

bool match_simple(StepOps& ops, const CellStates& states, RecurrentCell* cell) {
  for (const char* act : {"tanh", "sigmoid", "relu"}) {
    const bool found = !states.after[0].empty() && ops.attempt([&] {
      GateSums sums(ops, states.x, 1);
      if (ops.inside(states.after[0], act).empty()) return false;
      if (!sums.activated(states.after[0], act, 0, states.before[0]) || !sums.finish()) return false;
      if (!sums.fits_x({0}) || !sums.has_state()) return false;
      cell->weights = sums.weights();
      cell->biases = sums.biases();
      cell->attrs = {{"weight_places", sums.weight_places({0})},
                     {"bias_places", sums.bias_places({0})},
                     {"activation", std::string(act)}};
      return true;
    });
    if (found) return true;
  }
  return false;
}

}  // namespace anabranch
