// Keeps outside changes - a set, a clear, a load, a fork - away from the values of a scope while a step uses them. Any
// number of runs may be inside, and entering is a single atomic. A change waits until they have left and blocks new
// ones meanwhile. Any thread. Calls made by a run itself pass freely, because a run cannot wait for its own end.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/futex_mutex.h"

namespace anabranch {

class RunGate {
 public:
  RunGate();
  ~RunGate();
  RunGate(const RunGate&) = delete;

  // The calling thread takes part in a run, so it must not wait for anything that may wait for the end of that run.
  static bool inside_run();

  // A step that reads and writes the values.
  class Run {
   public:
    explicit Run(RunGate& gate);
    ~Run();
    Run(const Run&) = delete;

   private:
    RunGate& gate_;
    uint32_t forks_;
  };

  // A change of the values; null: no other thread sees them.
  class Change {
   public:
    explicit Change(RunGate* gate);
    ~Change();
    Change(const Change&) = delete;

   private:
    RunGate* gate_;
  };
  // Its two phases, for callers that must release something before they wait. No change starts if the caller is a run.
  enum class Begun { kYes, kBusy, kInsideRun };
  Begun try_begin_change();
  void begin_change();  // waits
  void end_change();

  // In a child of fork(): no step was running when it was made.
  bool was_quiet_at_fork() const { return quiet_at_fork_; }

 private:
  friend struct RunGatesAtFork;
  static constexpr uint32_t kChange = 1u << 31;  // requested or active; the other bits count runs

  void leave();
  bool wait_for_runs(const std::chrono::steady_clock::time_point* deadline);

  std::atomic<uint32_t> state_{0};
  FutexMutex one_change_;
  bool held_over_fork_ = false, quiet_at_fork_ = true;
};

}  // namespace anabranch
