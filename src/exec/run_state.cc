#include "exec/run.h"

#include <utility>

namespace anabranch {

RunState::RunState(const Plan& plan) : size_(plan.size()) {
  waiting = std::make_unique<std::atomic<int>[]>(size_);
  ready = std::make_unique<std::atomic<int>[]>(size_);
  done_ = std::make_unique<std::atomic<char>[]>(size_);
  current = std::make_unique<std::atomic<int>[]>(Team::kMaxWorkers);
}

void run_watched(Plan::Node& node, int i, const RunOptions& options) {
  const TraceSpan span(options.trace, i);
  if (options.probe) (*options.probe)(i);
  if (node.dynamic && node.shape) node.shape(node.context, node.kernel);
  if (!options.dry_run) node.kernel(node.context);
  if (options.after) (*options.after)(i);
}

void RunState::begin_sequential() {
  sequential_ = true;
  stopped_at_ = 0;
  failed_node_.store(-1, std::memory_order_relaxed);
}

void RunState::stopped_at(int node, bool failed) {
  stopped_at_ = node;
  if (failed) failed_node_.store(node, std::memory_order_relaxed);
}

void RunState::reset(const Plan& plan) {
  sequential_ = false;
  for (int i = 0; i < size_; ++i) {
    waiting[i].store(plan.predecessors(i), std::memory_order_relaxed);
    ready[i].store(-1, std::memory_order_relaxed);
    done_[i].store(0, std::memory_order_relaxed);
  }
  ready_head.store(0, std::memory_order_relaxed);
  ready_tail.store(0, std::memory_order_relaxed);
  left.store(size_, std::memory_order_relaxed);
  failed_node_.store(-1, std::memory_order_relaxed);
  error_ = nullptr;
}

void RunState::run_node(Plan& plan, int i, const RunOptions& options) {
  if (failed_node_.load(std::memory_order_relaxed) >= 0) return;
  try {
    run_watched(plan.node(i), i, options);
    done_[i].store(1, std::memory_order_relaxed);
  } catch (...) {
    int none = -1;
    if (failed_node_.compare_exchange_strong(none, i)) error_ = std::current_exception();
  }
}

void RunState::rethrow() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace anabranch
