#include "exec/run.h"

namespace anabranch {
namespace {

struct Job {
  Plan& plan;
  RunState& state;
  Team& team;
  const RunOptions& options;
  std::atomic<bool> over{false};

  void work(int worker) {
    if (worker == 0) {
      for (int i = 0; i < plan.size(); ++i) state.run_node(plan, i, options);
      over.store(true, std::memory_order_release);
      team.signal();
      return;
    }
    Team::Idle idle(team);
    while (!over.load(std::memory_order_acquire)) {
      if (team.help(worker)) {
        idle.reset();
      } else {
        idle.wait();
      }
    }
  }
};

}  // namespace

void run_sequential(Plan& plan, RunState& state, Team* team, const RunOptions& options) {
  state.reset(plan);
  if (!team || team->workers() == 1) {
    for (int i = 0; i < plan.size(); ++i) state.run_node(plan, i, options);
  } else {
    Job job{plan, state, *team, options};
    team->run_all([](void* self, int worker) { static_cast<Job*>(self)->work(worker); }, &job);
  }
  state.rethrow();
}

}  // namespace anabranch
