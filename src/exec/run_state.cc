#include "exec/run.h"

#include <utility>

#include "exec/stall_watch.h"

namespace anabranch {

RunState::RunState(const Plan& plan) : size_(plan.size()) {
  waiting = std::make_unique<std::atomic<int>[]>(size_);
  ready = std::make_unique<std::atomic<int>[]>(size_);
  done_ = std::make_unique<std::atomic<char>[]>(size_);
  current = std::make_unique<std::atomic<int>[]>(Team::kMaxWorkers);
}

void run_watched(Plan& plan, int i, const RunOptions& options) {
  const TraceSpan span(options.trace, i);
  if (options.probe) (*options.probe)(i);
  if (!options.dry_run) {
    plan.run(i);
  } else if (plan.is_dynamic(i)) {
    plan.infer(i);
  }
  if (options.after) (*options.after)(i);
}

RunState::~RunState() {
  if (describe_) StallWatch::remove(this);
}

void RunState::watch_for_stalls(std::function<std::string(int)> describe) {
  describe_ = std::move(describe);
  StallWatch::add(this);
}

void RunState::begin_sequential(const RunOptions& options) {
  sequential_ = true;
  failed_node_.store(-1, std::memory_order_relaxed);
  report_s_.store(options.stall_report_s, std::memory_order_relaxed);
  at(0);
  sequential_runs_.store(sequential_runs_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void RunState::end_sequential(bool failed) {
  sequential_runs_.store(sequential_runs_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  if (failed) failed_node_.store(at_.load(std::memory_order_relaxed), std::memory_order_relaxed);
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
    run_watched(plan, i, options);
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
