// The pool: workers that take part in a job when one is open, and in loops that another worker has split. A worker that
// finds nothing to do spins for a while, then parks in the kernel. Nobody waits for a worker that has nothing in hand,
// so a busy machine that runs one of them late does not hold the others up. No lock is taken and nothing is allocated
// while a job runs.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "base/parallel.h"
#include "base/threads.h"
#include "base/turn_lock.h"

namespace anabranch {

class Team final : public Parallel {
 public:
  static constexpr int kMaxWorkers = 256;

  // Starts workers - 1 threads and returns when they are prepared: the caller of open() is worker 0. ResourceExhausted
  // when the system does not give them.
  explicit Team(int workers);
  ~Team() override;
  Team(const Team&) = delete;

  // The process's team of this size, made at first use; 0 is the number of usable cores.
  static Team& of_size(int workers);
  // True in a thread that works in a job of some team: a nested run must not wait for the team it is part of.
  static bool inside();
  // What every thread of a team that is made later does first: libraries set up what they keep per thread there, so
  // that no step does it. Called before the first team is made.
  static void at_thread_start(void (*prepare)());

  int workers() const { return static_cast<int>(slots_.size()) - 1; }

  struct Job {
    void* self;
    bool (*work)(void* self, int worker);  // does what there is to do now; false when there was nothing
    void (*waited)(void* self);            // a worker has parked for a second: time to look for a stall
  };
  // Offers the job to the other workers until close(), which returns when none of them has it in hand. The caller calls
  // work(self, 0) itself meanwhile. One job at a time: other callers of open() wait.
  void open(const Job& job);
  void close();

  // Parallel: cuts a loop; pieces go to workers with nothing else to do. Inside a piece the caller does all.
  void run(int64_t n, int64_t piece, Body body, void* fn) override;
  // Takes pieces of a loop that another worker has open; false when there was none.
  bool help(int worker);
  void signal();  // something to do appeared: wakes parked workers, a plain increment when there are none

  uint32_t parks() const { return parks_.load(std::memory_order_relaxed); }  // times that somebody went to sleep

  // Waiting for something to do: spins for FLAGS_spin_us, then parks until signal() or a timeout. A worker that has
  // parked once while a job is open stays awake longer, but leaves its core to others between looks: a short job costs
  // one wake-up per worker, and a long node keeps no core busy that it does not use.
  class Idle {
   public:
    explicit Idle(Team& team) : team_(team) { reset(); }
    void reset();  // before looking for work: a signal after this is not missed
    // Returns after a signal, or after a timeout (true); negative: no timeout.
    bool wait(int64_t timeout_ms);

   private:
    bool spin() const;   // false: nothing came within FLAGS_spin_us
    bool watch() const;  // false: nothing came while it looked

    Team& team_;
    uint32_t seen_ = 0;
    uint32_t parked_in_ = 0;  // number of the job
  };

 private:
  friend struct TeamsAtFork;
  struct alignas(64) LoopSlot {  // one per worker, never freed while the team lives: late helpers touch it safely
    std::atomic<bool> open{false};
    std::atomic<int> helpers{0};
    std::atomic<int64_t> next{0};
    int64_t n = 0, piece = 1;
    Body body = nullptr;
    void* fn = nullptr;
    std::atomic<bool> failed{false};
    std::exception_ptr error;
  };

  void start_threads();
  void start_again();  // in the child of a fork, where its threads are not
  void stop();
  void worker_main(int worker);
  bool take_part(int worker, bool waited);  // in the open job; false when there is none, or nothing to do
  static void take_pieces(LoopSlot& slot);
  void split(LoopSlot& slot, int64_t n, int64_t piece, Body body, void* fn);
  void pause() const;

  LoopSlot& callers_slot() { return slots_.back(); }

  std::vector<LoopSlot> slots_;  // by worker; the last one is for threads that are no workers
  std::atomic<int> open_loops_{0};
  std::atomic_flag caller_slot_;  // callers_slot() is taken
  alignas(64) std::atomic<uint32_t> signal_{0};
  std::atomic<uint32_t> parks_{0};
  std::atomic<bool> parked_{false};  // someone may sleep: the next signal has to call the kernel
  bool spins_;

  alignas(64) std::atomic<bool> job_open_{false};
  std::atomic<int> in_job_{0};  // workers that have the job in hand
  std::atomic<uint32_t> job_number_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> lost_threads_{false};  // this is the child of a fork
  std::atomic<int> prepared_{0};           // threads that have begun to look for work
  Job job_{};
  TurnLock one_job_;
  Threads threads_;
};

}  // namespace anabranch
