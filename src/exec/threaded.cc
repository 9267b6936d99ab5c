// Dependency counting: a node is ready when its counter of unfinished predecessors reaches zero. Every node becomes
// ready exactly once in a run, so the ready queue is a plain array with two cursors: appending claims a slot, taking
// one advances the head. A worker runs one of the successors it made ready itself, and enqueues the others.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "base/counted.h"
#include "base/flags.h"
#include "base/float_mode.h"
#include "exec/run.h"

namespace anabranch {
namespace {

using Clock = std::chrono::steady_clock;

struct Job {
  Plan& plan;
  RunState& state;
  ThreadPool& pool;
  const RunOptions& options;
  std::atomic<int64_t> next_report_ms;
  Clock::time_point begin = Clock::now();

  Job(Plan& p, RunState& s, ThreadPool& t, const RunOptions& o)
      : plan(p), state(s), pool(t), options(o), next_report_ms(static_cast<int64_t>(o.stall_report_s * 1000)) {
    for (int w = 0; w < t.workers(); ++w) state.current[w].store(-1, std::memory_order_relaxed);
    if (AsyncNodes* later = state.later()) {
      later->begin(&state,
                   {this, [](void* self, int node, bool well) { static_cast<Job*>(self)->end_async(node, well); }});
    }
    for (int root : plan.roots()) offer(root);
  }

  void offer(int node) {
    const int place = state.ready_tail.fetch_add(1, std::memory_order_relaxed);
    state.ready[place].store(node, std::memory_order_release);
  }

  int take() {
    int head = state.ready_head.load(std::memory_order_relaxed);
    while (head < plan.size()) {
      const int node = state.ready[head].load(std::memory_order_acquire);
      if (node < 0) return -1;
      if (state.ready_head.compare_exchange_weak(head, head + 1, std::memory_order_relaxed)) return node;
    }
    return -1;
  }

  // Runs a node; returns one that became ready, or -1.
  int finish(int node, int worker) {
    state.current[worker].store(node, std::memory_order_relaxed);
    const bool ended = state.run_node(plan, node, options);
    state.current[worker].store(-1, std::memory_order_relaxed);
    return ended ? count_down(node) : -1;
  }

  // In the thread in which an asynchronous node ends.
  void end_async(int node, bool well) {
    if (well) state.mark_done(node);
    ThreadPool& all = pool;
    const int next = count_down(node);
    if (next < 0) return;  // the run may have ended
    offer(next);
    all.signal();  // another thread may have run the offered node: this job may be gone
  }

  // Counts down the successors of a node that has ended; returns one that became ready, or -1.
  int count_down(int node) {
    ThreadPool& all = pool;  // outlives the job, which may end with the last node
    int mine = -1;
    bool offered = false;
    for (int next : plan.successors(node)) {
      // release: what this node wrote; the thread that counts to zero acquires the writes of all predecessors
      if (state.waiting[next].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      if (mine >= 0) {
        offer(mine);
        offered = true;
      }
      mine = next;
    }
    const bool last = state.left.fetch_sub(1, std::memory_order_acq_rel) == 1;
    if (offered || last) all.signal();
    return mine;
  }

  // Runs ready nodes as long as there are any; false if there was none.
  bool work(int worker) {
    int node = take();
    if (node < 0) return false;
    while (node >= 0) {
      node = finish(node, worker);
      if (node < 0) node = take();
    }
    return true;
  }

  // The caller's part: until every node has finished, on any thread.
  void run() {
    ThreadPool::Idle idle(pool);
    while (state.left.load(std::memory_order_acquire) > 0) {
      idle.reset();
      if (work(0) || pool.help(0) || state.left.load(std::memory_order_acquire) == 0) continue;
      if (idle.wait(1000)) report_stall();
    }
  }

  // A thread that has waited for long reports the nodes that keep the run from ending. Never aborts: the user may be in
  // a debugger.
  void report_stall() {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
    int64_t due = next_report_ms.load();
    if (ms < due ||
        !next_report_ms.compare_exchange_strong(due, due + static_cast<int64_t>(options.stall_report_s * 1000))) {
      return;
    }
    std::string text = fmt::format("anabranch: this step has run for {:.1f} s, with {} of {} left\n", ms / 1e3,
                                   state.left.load(), counted(plan.size(), "node"));
    for (int w = 0; w < pool.workers(); ++w) {
      const int node = state.current[w].load();
      text += fmt::format("  thread {}: {}\n", w, node < 0 ? "waiting for a node to become ready" : name(node));
    }
    for (int i = 0; state.later() && i < plan.size(); ++i) {
      if (state.later()->open(i)) text += fmt::format("  started, not finished: {}\n", name(i));
    }
    std::fputs(text.c_str(), stderr);
  }

  std::string name(int node) const {
    return options.describe ? (*options.describe)(node) : fmt::format("node {}", node);
  }
};

}  // namespace

void run_threaded(Plan& plan, RunState& state, ThreadPool& pool, const RunOptions& options) {
  state.reset(plan);
  if (plan.size() == 0) return;
  const InFloatMode mode(float_mode_of_kernels(Flags::flush_denormals()));
  Job job(plan, state, pool, options);
  pool.open({&job, [](void* self, int worker) { return static_cast<Job*>(self)->work(worker); },
             [](void* self) { static_cast<Job*>(self)->report_stall(); }});
  job.run();
  pool.close();
  state.rethrow();
}

}  // namespace anabranch
