#include "exec/run.h"

namespace anabranch {

// Kernels reach the team through their context; nobody else has to know about it here.
void run_sequential(Plan& plan, RunState& state, const RunOptions& options) {
  state.reset(plan);
  for (int i = 0; i < plan.size(); ++i) state.run_node(plan, i, options);
  state.rethrow();
}

}  // namespace anabranch
