#include "base/flags.h"
#include "base/float_mode.h"
#include "exec/run.h"

namespace anabranch {
namespace {

// The loop of a steady step: every instruction outside of kernels must be justified.
void run_plain(Plan& plan, RunState& state) {
  for (int i = 0, n = plan.size(); i < n; ++i) {
    state.at(i);
    plan.run(i);
  }
}

// Asynchronous nodes overlap with nodes that do not depend on them.
void run_with_async(Plan& plan, RunState& state, const RunOptions& options) {
  AsyncNodes& later = *state.later();
  later.begin(&state, {});
  try {
    for (int i = 0; i < plan.size() && state.failed_node() < 0; ++i) {
      state.at(i);
      for (const int before : plan.later_before(i)) later.wait(before);
      if (state.failed_node() >= 0) break;
      if (plan.is_async(i) && options.plain()) {
        later.start(plan, i);
      } else {
        run_watched(plan, i, options);
      }
    }
  } catch (...) {
    state.keep_error(state.at(), std::current_exception());
  }
  later.wait_all();
  state.rethrow();
}

}  // namespace

// Kernels reach the pool through their context; nothing else here needs to know about it.
void run_sequential(Plan& plan, RunState& state, const RunOptions& options) {
  const InFloatMode mode(float_mode_of_kernels(Flags::flush_denormals()));
  state.begin_sequential(options);
  try {
    if (state.special()) [[unlikely]] {
      state.queues() ? run_queued(plan, state, options) : run_with_async(plan, state, options);
    } else if (options.plain()) {
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
