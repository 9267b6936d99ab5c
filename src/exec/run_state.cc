#include "exec/run.h"

#include <utility>

#include "exec/stall_watch.h"

namespace anabranch {

RunState::RunState(const Plan& plan) : size_(plan.size()) {
  waiting = std::make_unique<std::atomic<int>[]>(size_);
  ready = std::make_unique<std::atomic<int>[]>(size_);
  done_ = std::make_unique<std::atomic<char>[]>(size_);
  current = std::make_unique<std::atomic<int>[]>(ThreadPool::kMaxWorkers);
  if (plan.queue_count() > 0) {
    queues_ = std::make_unique<Queues>(plan);
    queues_->follow_edges();
  } else if (plan.has_async()) {
    later_ = std::make_shared<AsyncNodes>(size_);
  }
  special_ = later_ || queues_;
}

namespace {

thread_local const RunOptions* watched = nullptr;

}  // namespace

Watching::Watching(const RunOptions* options) : around_(std::exchange(watched, options)) {}

Watching::~Watching() { watched = around_; }

const RunOptions* watched_run() { return watched; }

void run_watched(Plan& plan, int i, const RunOptions& options) {
  const Watching watching(&options);
  const TraceSpan span(options.trace, i);
  if (options.probe) (*options.probe)(i);
  if (!options.dry_run) {
    run_to_end(plan, i);
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
  error_ = nullptr;
  report_s_.store(options.stall_report_s, std::memory_order_relaxed);
  at(0);
  sequential_runs_.store(sequential_runs_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void RunState::end_sequential(bool failed) {
  sequential_runs_.store(sequential_runs_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  int none = -1;
  const int at = at_.load(std::memory_order_relaxed);
  if (failed && at < size_) failed_node_.compare_exchange_strong(none, at);
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

bool RunState::run_node(Plan& plan, int i, const RunOptions& options) {
  if (failed_node_.load(std::memory_order_relaxed) >= 0) return true;
  try {
    if (plan.is_async(i) && options.plain()) {
      if (!later_->start(plan, i)) return false;
    } else {
      run_watched(plan, i, options);
    }
    mark_done(i);
  } catch (...) {
    keep_error(i, std::current_exception());
  }
  return true;
}

void RunState::keep_error(int node, std::exception_ptr error) {
  int none = -1;
  if (failed_node_.compare_exchange_strong(none, node)) error_ = std::move(error);
  if (later_) later_->cancel();
}

void RunState::rethrow() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace anabranch
