#include "base/run_gate.h"

#include <mutex>
#include <set>

#include "base/fork.h"
#include "base/futex.h"
#include "base/thread_pool.h"

namespace anabranch {
namespace {

thread_local int runs_of_thread = 0;

struct Gates {
  std::mutex mutex;
  std::set<RunGate*> all;
};
Gates& gates() {
  static auto& made = *new Gates();  // never destroyed: a process forks and runs until its end
  return made;
}

}  // namespace

bool RunGate::inside_run() { return runs_of_thread > 0 || ThreadPool::inside(); }

RunGate::RunGate() {
  const std::lock_guard lock(gates().mutex);
  gates().all.insert(this);
}

RunGate::~RunGate() {
  const std::lock_guard lock(gates().mutex);
  gates().all.erase(this);
}

RunGate::Run::Run(RunGate& gate) : gate_(gate), forks_(forks()) {
  const bool nested = inside_run();
  ++runs_of_thread;
  while ((gate_.state_.fetch_add(1, std::memory_order_acquire) & kChange) && !nested) {
    gate_.leave();
    for (uint32_t s; (s = gate_.state_.load()) & kChange;) futex_wait(gate_.state_, s, -1);
  }
}

RunGate::Run::~Run() {
  --runs_of_thread;
  if (forks_ == forks()) gate_.leave();
}

void RunGate::leave() {
  if (state_.fetch_sub(1, std::memory_order_release) == (kChange | 1)) futex_wake_all(state_);
}

bool RunGate::wait_for_runs(const std::chrono::steady_clock::time_point* deadline) {
  for (uint32_t s; (s = state_.load(std::memory_order_acquire)) != kChange;) {
    const bool late = deadline && std::chrono::steady_clock::now() >= *deadline;
    if (late) return false;
    futex_wait(state_, s, deadline ? 1 : -1);
  }
  return true;
}

RunGate::Change::Change(RunGate* gate) : gate_(gate && !inside_run() ? gate : nullptr) {
  if (gate_) gate_->begin_change();
}

RunGate::Change::~Change() {
  if (gate_) gate_->end_change();
}

RunGate::Begun RunGate::try_begin_change() {
  if (inside_run()) return Begun::kInsideRun;
  if (!one_change_.try_lock()) return Begun::kBusy;
  uint32_t none = 0;
  if (state_.compare_exchange_strong(none, kChange, std::memory_order_acquire)) return Begun::kYes;
  one_change_.unlock();
  return Begun::kBusy;
}

void RunGate::begin_change() {
  one_change_.lock();
  state_.fetch_or(kChange);
  wait_for_runs(nullptr);
}

void RunGate::end_change() {
  state_.fetch_and(~kChange, std::memory_order_release);
  futex_wake_all(state_);
  one_change_.unlock();
}

// Steps end before a fork so that the child sees complete values; long steps are not waited for.
struct RunGatesAtFork {
  static void before() {
    constexpr auto kPatience = std::chrono::seconds(1);
    gates().mutex.lock();
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    for (RunGate* gate : gates().all) {
      gate->held_over_fork_ = !RunGate::inside_run() && gate->one_change_.try_lock();
      if (gate->held_over_fork_) gate->state_.fetch_or(RunGate::kChange);
    }
    for (RunGate* gate : gates().all) {
      gate->quiet_at_fork_ = gate->held_over_fork_ ? gate->wait_for_runs(&deadline) : gate->state_.load() == 0;
    }
  }
  static void parent() {
    for (RunGate* gate : gates().all) {
      if (gate->held_over_fork_) gate->end_change();
    }
    gates().mutex.unlock();
  }
  static void child() {
    for (RunGate* gate : gates().all) {
      gate->state_.store(0);
      gate->one_change_.reset();
    }
    gates().mutex.unlock();
  }
};

namespace {
[[maybe_unused]] const bool hooked =
    (at_fork(ForkStage::kRuns, {RunGatesAtFork::before, RunGatesAtFork::parent, RunGatesAtFork::child}), true);
}

}  // namespace anabranch
