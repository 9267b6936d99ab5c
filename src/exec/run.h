// One run of a plan. All state that changes during a run is in a RunState, created once per plan and reused. The first
// error wins: no further kernel starts, the rest of the graph drains, and the error is thrown to the caller.
#pragma once
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "exec/async_nodes.h"
#include "exec/plan.h"
#include "exec/queues.h"
#include "exec/trace.h"

namespace anabranch {

using CheckValue = std::function<void(const Value&, const std::string& name)>;  // may throw

struct RunOptions {
  bool dry_run = false;                                       // everything but the kernels
  const std::function<void(int)>* probe = nullptr;            // called before each kernel with the node; may throw
  const std::function<void(int)>* after = nullptr;            // called after each kernel with the node; may throw
  const CheckValue* check = nullptr;                          // called with the outputs of ops of sub-blocks
  const std::function<std::string(int)>* describe = nullptr;  // names a node in stall reports
  double stall_report_s = 30;
  Trace* trace = nullptr;  // records when each node ran, and on which thread

  // No hooks: only kernels run.
  bool plain() const { return !dry_run && !probe && !after && !trace; }
};

// Runs one node with the hooks of the options.
void run_watched(Plan& plan, int i, const RunOptions& options);
// Provides the hooks of the options for the ops in the block that a node runs, to the thread that runs the node, during
// this object's lifetime.
class Watching {
 public:
  explicit Watching(const RunOptions* options);
  ~Watching();
  Watching(const Watching&) = delete;

 private:
  const RunOptions* around_;
};
const RunOptions* watched_run();  // null if there are no hooks

class RunState {
 public:
  explicit RunState(const Plan& plan);
  ~RunState();
  RunState(const RunState&) = delete;

  // Makes a thread that checks once a second report sequential runs that take too long. `describe` names a node.
  // Threaded runs report themselves.
  void watch_for_stalls(std::function<std::string(int)> describe);

  // For a sequential run: its start, its current node (all earlier ones have finished), and its end.
  void begin_sequential(const RunOptions& options);
  void at(int node) { at_.store(node, std::memory_order_relaxed); }
  int at() const { return at_.load(std::memory_order_relaxed); }
  void end_sequential(bool failed);
  // Asynchronous nodes; null if the plan has none.
  AsyncNodes* later() const { return later_.get(); }
  // Queues of devices; null if the CPU runs the whole plan.
  Queues* queues() const { return queues_.get(); }
  // Whether the plan needs more than the simple loop that runs its nodes one after another on the CPU.
  bool special() const { return special_; }

  // Before a threaded run.
  void reset(const Plan& plan);
  // Runs one node unless the run has failed; keeps the first error. False: it completes asynchronously.
  bool run_node(Plan& plan, int node, const RunOptions& options);
  void keep_error(int node, std::exception_ptr error);  // unless there is one
  void mark_done(int node) { done_[node].store(1, std::memory_order_relaxed); }
  void rethrow();  // the first error, if any

  bool finished(int node) const {
    if (!sequential_) return done_[node].load(std::memory_order_relaxed) != 0;
    return node < at_.load(std::memory_order_relaxed) && node != failed_node() && !(later_ && later_->open(node));
  }
  bool started(int node) const { return finished(node) || node == failed_node(); }
  int failed_node() const { return failed_node_.load(std::memory_order_relaxed); }

  // Used by the threaded executor.
  std::unique_ptr<std::atomic<int>[]> current;  // current node of each worker; -1 when idle
  std::unique_ptr<std::atomic<int>[]> waiting;  // unfinished predecessors of each node
  std::unique_ptr<std::atomic<int>[]> ready;    // nodes in the order in which they became ready; -1: not yet
  std::atomic<int> ready_head{0}, ready_tail{0}, left{0};

 private:
  int size_;
  bool sequential_ = true;
  friend class StallWatch;
  std::atomic<int> at_{0};
  std::atomic<uint32_t> sequential_runs_{0};  // odd: a run is in progress
  std::atomic<double> report_s_{0};
  std::function<std::string(int)> describe_;  // set: StallWatch checks this run
  std::unique_ptr<std::atomic<char>[]> done_;
  std::atomic<int> failed_node_{-1};
  std::exception_ptr error_;
  std::shared_ptr<AsyncNodes> later_;
  std::unique_ptr<Queues> queues_;
  bool special_ = false;
};

// In plan order, in this thread; kernels may still split loops over a pool. The oracle of the threaded executor.
void run_sequential(Plan& plan, RunState& state, const RunOptions& options);
// For devices: enqueues their nodes in plan order, and returns when all have passed.
void run_queued(Plan& plan, RunState& state, const RunOptions& options);
// Nodes run as soon as their predecessors have finished, on all workers of the pool.
void run_threaded(Plan& plan, RunState& state, ThreadPool& pool, const RunOptions& options);

}  // namespace anabranch
