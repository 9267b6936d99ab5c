#include "exec/run.h"

namespace anabranch {
namespace {

// The loop of a steady step: everything that is not a kernel has to justify its instructions.
void run_plain(Plan& plan, int* at) {
  for (const int n = plan.size(); *at < n; ++*at) {
    Plan::Node& node = plan.node(*at);
    if (node.dynamic && node.shape) [[unlikely]]
      node.shape(node.context, node.kernel);
    node.kernel(node.context);
  }
}

}  // namespace

// Kernels reach the team through their context; nobody else has to know about it here.
void run_sequential(Plan& plan, RunState& state, const RunOptions& options) {
  state.begin_sequential();
  int at = 0;
  try {
    if (options.plain()) {
      run_plain(plan, &at);
    } else {
      for (; at < plan.size(); ++at) run_watched(plan.node(at), at, options);
    }
  } catch (...) {
    state.stopped_at(at, /*failed=*/true);
    throw;
  }
  state.stopped_at(at, /*failed=*/false);
}

}  // namespace anabranch
