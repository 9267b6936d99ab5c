// The thread pool. Workers take part in an open job and in loops that another worker has split. A worker without work
// spins for a while, then parks in the kernel. A job never waits for an idle worker, so a worker that the busy machine
// schedules late does not delay the others. A job takes no lock and allocates nothing.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "base/futex_mutex.h"
#include "base/parallel.h"
#include "base/threads.h"

namespace anabranch {

class ThreadPool final : public Parallel {
 public:
  static constexpr int kMaxWorkers = 256;

  // Starts workers - 1 threads and returns when they are ready; the caller of open() is worker 0. ResourceExhausted if
  // the system refuses threads.
  explicit ThreadPool(int workers);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;

  // The process's pool of this size, created at first use; 0 stands for the number of usable cores.
  static ThreadPool& of_size(int workers);
  // True in a thread that works in a job of some pool: a nested run must not wait for the pool it is part of.
  static bool inside();
  // Runs first in every thread of pools created later: libraries set up their per-thread state there, so that no step
  // does. Call it before the first pool is created.
  static void at_thread_start(void (*prepare)());

  int workers() const { return static_cast<int>(slots_.size()) - 1; }

  struct Job {
    void* self;
    bool (*work)(void* self, int worker);  // does the work that is ready; false when there was none
    void (*waited)(void* self);            // a worker has been parked for a second: check for a stall
  };
  // Offers the job to the other workers until close(), which returns when none of them works on it. Meanwhile the
  // caller runs work(self, 0) itself. One job at a time: other callers of open() wait.
  void open(const Job& job);
  void close();

  // Parallel: splits a loop; idle workers take chunks. A nested loop inside a chunk runs in its caller alone.
  void run(int64_t n, int64_t chunk, Body body, void* fn) override;
  // Takes chunks of a loop that another worker has split; false if there was none.
  bool help(int worker);
  void signal();  // new work appeared: wakes parked workers, a plain increment if there are none

  uint32_t parks() const { return parks_.load(std::memory_order_relaxed); }  // number of times a worker went to sleep

  // Waiting for work: spins for FLAGS_spin_us, then parks until signal() or a timeout. A worker that has parked once
  // while a job is open stays awake longer but yields its core between checks: a short job costs one wake-up per
  // worker, and a long node keeps no core busy for nothing.
  class Idle {
   public:
    explicit Idle(ThreadPool& pool) : pool_(pool) { reset(); }
    void reset();  // before searching for work: a later signal is not missed
    // Returns after a signal, or after a timeout (true); negative: no timeout.
    bool wait(int64_t timeout_ms);

   private:
    bool spin() const;   // false: no signal within FLAGS_spin_us
    bool watch() const;  // false: no signal while it watched

    ThreadPool& pool_;
    uint32_t seen_ = 0;
    uint32_t parked_in_ = 0;  // number of the job
  };

 private:
  friend struct PoolsAtFork;
  struct alignas(64) LoopSlot {  // one per worker, never freed while the pool lives: late helpers may still touch it
    std::atomic<bool> open{false};
    std::atomic<int> helpers{0};
    std::atomic<int64_t> next{0};
    int64_t n = 0, chunk = 1;
    Body body = nullptr;
    void* fn = nullptr;
    unsigned mode = 0;  // of floating-point numbers, in the thread that split the loop
    std::atomic<bool> failed{false};
    std::exception_ptr error;
  };

  void start_threads();
  void start_again();  // in the child of a fork, which has none of its threads
  void stop();
  void worker_main(int worker);
  bool take_part(int worker, bool waited);  // in the open job; false if there is none or nothing to do
  static void take_chunks(LoopSlot& slot);
  void split(LoopSlot& slot, int64_t n, int64_t chunk, Body body, void* fn);
  void pause() const;

  LoopSlot& callers_slot() { return slots_.back(); }

  std::vector<LoopSlot> slots_;  // by worker; the last one is for threads outside of the pool
  std::atomic<int> open_loops_{0};
  std::atomic_flag caller_slot_;  // callers_slot() is taken
  alignas(64) std::atomic<uint32_t> signal_{0};
  std::atomic<uint32_t> parks_{0};
  std::atomic<bool> parked_{false};  // a worker may be asleep: the next signal must call the kernel
  bool spins_;

  alignas(64) std::atomic<bool> job_open_{false};
  std::atomic<int> in_job_{0};  // workers that are working on the job
  std::atomic<uint32_t> job_number_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> lost_threads_{false};  // this is the child of a fork
  std::atomic<int> prepared_{0};           // threads that have started to search for work
  Job job_{};
  std::atomic<unsigned> mode_{0};  // of floating-point numbers, in the thread that opened the job
  FutexMutex one_job_;
  Threads threads_;
};

}  // namespace anabranch
