// Keeps changes from outside - a set, a clear, a load, a fork - away from the values of a scope while a step uses them.
// Any number of runs are inside at once, and beginning one is a single atomic; a change waits until they have left and
// holds up those that come meanwhile. Any thread. What a run itself calls passes freely: it cannot wait for its own
// end.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/turn_lock.h"

namespace anabranch {

class RunGate {
 public:
  RunGate();
  ~RunGate();
  RunGate(const RunGate&) = delete;

  // The calling thread takes part in a run: it must not wait for what may wait for the end of that run.
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

  // A change of the values; null: nobody else sees them.
  class Change {
   public:
    explicit Change(RunGate* gate);
    ~Change();
    Change(const Change&) = delete;

   private:
    RunGate* gate_;
  };
  // Its parts, for who has something to let go of before waiting. Nothing is begun where a run is what calls.
  enum class Begun { kYes, kBusy, kInsideRun };
  Begun try_begin_change();
  void begin_change();  // waits
  void end_change();

  // In a child of fork(): no step was under way when it was made.
  bool was_quiet_at_fork() const { return quiet_at_fork_; }

 private:
  friend struct RunGatesAtFork;
  static constexpr uint32_t kChange = 1u << 31;  // wanted or under way; the other bits count runs

  void leave();
  bool wait_for_runs(const std::chrono::steady_clock::time_point* deadline);

  std::atomic<uint32_t> state_{0};
  TurnLock one_change_;
  bool held_over_fork_ = false, quiet_at_fork_ = true;
};

}  // namespace anabranch
