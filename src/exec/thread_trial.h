// Measures whether a plan is faster on one thread or on many: its first runs alternate between the two, and the faster
// way stays, until the work has changed much or many runs have passed. Values do not depend on the choice.
#pragma once
#include <chrono>
#include <cstdint>

namespace anabranch {

class ThreadTrial {
 public:
  void set_work(int64_t elems);  // elements that a run touches; call it after shapes have changed
  // Threads for the next run? `asked`: the user requested some, which decides if FLAGS_measure_threads is off.
  bool choose(bool asked);

  // Times one run; a lap that does not count (errors, hooks around nodes) leaves the trial as it was.
  class Lap {
   public:
    Lap(ThreadTrial& trial, bool counts);
    ~Lap();
    Lap(const Lap&) = delete;

   private:
    ThreadTrial& trial_;
    bool counts_;
    int exceptions_;
    std::chrono::steady_clock::time_point begin_;
  };

 private:
  void begin();
  void record(int64_t ns);

  int64_t work_ = -1;
  int laps_ = 0;           // of this trial
  int64_t best_ns_[2]{};   // on one thread, on many
  bool threaded_ = false;  // in the current lap
  bool decided_ = false;
  bool winner_ = false;
  int64_t runs_left_ = 0;  // until the next trial
  int64_t pause_ = 0;      // runs between the last trial and the next one
};

}  // namespace anabranch
