// The pool: a team of workers that run one function together, and split loops among those of them that are idle.
// The thread that calls run_all() is worker 0; the others are threads that wait between calls, first spinning, then
// parked in the kernel. One run_all at a time (callers queue up). No lock is taken and nothing is allocated in a run.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/parallel.h"

namespace anabranch {

class Team final : public Parallel {
 public:
  static constexpr int kMaxWorkers = 256;

  explicit Team(int workers);
  ~Team() override;
  Team(const Team&) = delete;

  // The process's team of this size, made at first use; 0 is the number of usable cores.
  static Team& of_size(int workers);

  // True in a thread that is working for some team: a nested run must not wait for the team it is part of.
  static bool inside();

  int workers() const { return static_cast<int>(slots_.size()); }

  using Work = void (*)(void* self, int worker);
  // work(self, w) once for every worker w, at the same time; returns when all have returned. It must not throw.
  void run_all(Work work, void* self);

  // Parallel: pieces go to whoever calls help() meanwhile. Outside run_all, or inside a piece, the caller does all.
  void run(int64_t n, int64_t piece, Body body, void* fn) override;
  // Takes pieces of a loop that another worker has open; false when there was none.
  bool help(int worker);

  // Idle waiting inside run_all: spins for a while, then parks until signal() or the timeout.
  class Idle {
   public:
    explicit Idle(Team& team) : team_(team), seen_(team.signal_.load(std::memory_order_acquire)) {}
    void reset() { spins_ = 0; seen_ = team_.signal_.load(std::memory_order_acquire); }
    // One step of waiting; true when it parked for the whole timeout (a second).
    bool wait();

   private:
    Team& team_;
    uint32_t seen_;
    int spins_ = 0;
  };
  void signal();  // something to do appeared: wakes parked workers, a plain increment when there are none

 private:
  struct alignas(64) LoopSlot {  // one a worker, never freed while the team lives: late helpers touch it safely
    std::atomic<bool> open{false};
    std::atomic<int> helpers{0};
    std::atomic<int64_t> next{0};
    int64_t n = 0, piece = 1;
    Body body = nullptr;
    void* fn = nullptr;
    std::atomic<bool> failed{false};
    std::exception_ptr error;
  };

  void worker_main(int worker);
  static void take_pieces(LoopSlot& slot);

  std::vector<LoopSlot> slots_;
  std::atomic<int> open_loops_{0};
  std::atomic<uint32_t> signal_{0};
  std::atomic<int> parked_{0};
  int spin_limit_;

  alignas(64) std::atomic<uint32_t> epoch_{0};  // raised for every run_all
  std::atomic<int> sleeping_{0};                // workers parked between runs
  std::atomic<int> unfinished_{0};
  std::atomic<bool> stop_{false};
  Work work_ = nullptr;
  void* self_ = nullptr;
  std::mutex one_at_a_time_;
  std::vector<std::thread> threads_;
};

}  // namespace anabranch
