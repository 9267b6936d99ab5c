#include "exec/run.h"

namespace anabranch {
namespace {

// The loop of a steady step: everything that is not a kernel has to justify its instructions.
void run_plain(Plan& plan, RunState& state) {
  for (int i = 0, n = plan.size(); i < n; ++i) {
    state.at(i);
    plan.run(i);
  }
}

}  // namespace

// Kernels reach the team through their context; nobody else has to know about it here.
void run_sequential(Plan& plan, RunState& state, const RunOptions& options) {
  state.begin_sequential(options);
  try {
    if (options.plain()) {
      run_plain(plan, state);
    } else {
      for (int i = 0; i < plan.size(); ++i) {
        state.at(i);
        run_watched(plan, i, options);
      }
    }
  } catch (...) {
    state.end_sequential(/*failed=*/true);
    throw;
  }
  state.at(plan.size());
  state.end_sequential(/*failed=*/false);
}

}  // namespace anabranch
