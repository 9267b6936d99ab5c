// The launching thread of a plan with nodes on devices.
#include "base/error.h"
#include "base/flags.h"
#include "exec/run.h"

namespace anabranch {
namespace {

void launch_watched(Plan& plan, int i, Queues& queues, const RunOptions& options) {
  const Watching watching(&options);
  const TraceSpan span(options.trace, i);
  if (options.probe) (*options.probe)(i);
  if (!options.dry_run) {
    if (options.trace) queues.times().before(i, queues.queue_of(plan.queue_index(i)));
    queues.launch(plan, i, options.describe);
    if (options.trace) queues.times().after(i, queues.queue_of(plan.queue_index(i)));
  } else if (plan.is_dynamic(i)) {
    plan.infer(i);
  }
  if (options.after) (*options.after)(i);
}

// Launched work fails later, when its node is no longer known.
void wait_for_all(Queues& queues) {
  try {
    queues.wait_all();
  } catch (Error& e) {
    throw e.with_hint("set FLAGS_benchmark=1 to wait for each op, so that the error names the op that fails");
  }
}

void launch_stages(Plan& plan, RunState& state, const RunOptions& options) {
  Queues& queues = *state.queues();
  for (Stage& stage : queues.stages()) {
    const int first = stage.nodes.front();
    state.at(first);
    if (stage.queue_index == kHost) {
      queues.wait_before(first);
      run_to_end(plan, first);
    } else if (!stage.captured) {
      queues.launch(plan, first, options.describe);
    } else {
      queues.launch(plan, stage, state, options.describe);
    }
  }
}

void launch_nodes(Plan& plan, RunState& state, const RunOptions& options) {
  Queues& queues = *state.queues();
  const bool waits = Flags::benchmark() && !options.dry_run;
  for (int i = 0, n = plan.size(); i < n; ++i) {
    state.at(i);
    if (plan.queue_index(i) != kHost) {
      options.plain() ? queues.launch(plan, i, options.describe) : launch_watched(plan, i, queues, options);
      if (waits) [[unlikely]]
        queues.wait_for(plan.queue_index(i));
      continue;
    }
    if (!options.dry_run) queues.wait_before(i);
    options.plain() ? run_to_end(plan, i) : run_watched(plan, i, options);
  }
}

void launch_all(Plan& plan, RunState& state, const RunOptions& options) {
  Queues& queues = *state.queues();
  if (!options.dry_run && options.trace) queues.times().begin();
  if (!options.dry_run) queues.begin(plan);
  const bool by_stages = options.plain() && !Flags::benchmark() && !queues.stages().empty();
  by_stages ? launch_stages(plan, state, options) : launch_nodes(plan, state, options);
  if (options.dry_run) return;
  state.at(plan.size());
  queues.end();
  wait_for_all(queues);
  if (options.trace) queues.times().add_to(*options.trace);
  const auto reported = queues.reported();
  if (reported.node < 0) return;
  state.at(reported.node);
  throw Error(ErrorKind::kInvalidArgument, reported.text);
}

}  // namespace

void run_queued(Plan& plan, RunState& state, const RunOptions& options) {
  try {
    launch_all(plan, state, options);
  } catch (...) {
    state.queues()->abandon();
    throw;
  }
}

}  // namespace anabranch
