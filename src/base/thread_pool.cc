#include "base/thread_pool.h"

#include <immintrin.h>

#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/cpu.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "base/fork.h"

namespace anabranch {
namespace {

constexpr int kSpins = 4000;  // about 100 us of pauses

thread_local ThreadPool* current_pool = nullptr;
thread_local int current_worker = 0;
thread_local bool inside_chunk = false;
std::atomic<void (*)()> prepare_thread{nullptr};

struct ThreadPools {
  std::mutex mutex;
  std::map<int, std::unique_ptr<ThreadPool>> of_size;
  std::mutex live_mutex;  // taken inside of the other
  std::set<ThreadPool*> live;
};
ThreadPools& pools() {
  static auto& all = *new ThreadPools();  // never destroyed: at process exit other statics may still run a program
  return all;
}

}  // namespace

ThreadPool::ThreadPool(int workers) : slots_(static_cast<size_t>(workers) + 1) {
  // More workers than cores: a spinning worker would take the core from a working one.
  spins_ = workers <= usable_cores();
  start_threads();
  const std::lock_guard lock(pools().live_mutex);
  pools().live.insert(this);
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(pools().live_mutex);
    pools().live.erase(this);
  }
  stop();
  threads_.join();
}

void ThreadPool::start_threads() {
  threads_.start(
      workers() - 1, "workers", [this](int i) { worker_main(i + 1); }, [this] { stop(); });
  while (prepared_.load() < workers() - 1) std::this_thread::yield();
}

void ThreadPool::stop() {
  stop_.store(true);
  signal();
}

ThreadPool& ThreadPool::of_size(int workers) {
  if (workers <= 0) workers = usable_cores();
  AB_CHECK(workers <= kMaxWorkers, InvalidArgument, "num_threads must be at most {}, got {}", kMaxWorkers, workers);
  const std::lock_guard lock(pools().mutex);
  auto& pool = pools().of_size[workers];
  if (!pool) pool = std::make_unique<ThreadPool>(workers);
  return *pool;
}

void ThreadPool::at_thread_start(void (*prepare)()) { prepare_thread.store(prepare); }

bool ThreadPool::inside() { return current_pool != nullptr; }

void ThreadPool::pause() const {
  if (spins_) {
    _mm_pause();
  } else {
    std::this_thread::yield();
  }
}

// ---- forks

// A child that never runs a step, or calls exec at once, starts no threads: the first loop or job does.
struct PoolsAtFork {
  static void before() {
    pools().mutex.lock();
    pools().live_mutex.lock();
  }
  static void parent() {
    pools().live_mutex.unlock();
    pools().mutex.unlock();
  }
  static void child() {
    for (ThreadPool* pool : pools().live) lose_threads(*pool);
    parent();
  }
  static void lose_threads(ThreadPool& pool) {
    pool.threads_.forget();
    for (ThreadPool::LoopSlot& slot : pool.slots_) {
      slot.open.store(false);
      slot.helpers.store(0);
      slot.error = nullptr;
    }
    pool.open_loops_.store(0);
    pool.caller_slot_.clear();
    pool.parked_.store(false);
    pool.job_open_.store(false);
    pool.in_job_.store(0);
    pool.prepared_.store(0);
    pool.one_job_.reset();
    pool.lost_threads_.store(pool.workers() > 1);
  }
};

namespace {
[[maybe_unused]] const bool hooked =
    (at_fork(ForkStage::kPools, {PoolsAtFork::before, PoolsAtFork::parent, PoolsAtFork::child}), true);
}

void ThreadPool::start_again() {
  if (!lost_threads_.exchange(false)) return;
  try {
    start_threads();
  } catch (const Error&) {  // the caller does all of the work
    stop_.store(false);
  }
}

// ---- jobs

void ThreadPool::open(const Job& job) {
  one_job_.lock();
  if (lost_threads_.load(std::memory_order_relaxed)) [[unlikely]]
    start_again();
  job_ = job;
  mode_.store(float_mode(), std::memory_order_relaxed);
  current_pool = this;
  current_worker = 0;
  job_number_.fetch_add(1, std::memory_order_relaxed);
  job_open_.store(true);
  signal();
}

void ThreadPool::close() {
  job_open_.store(false);  // seq_cst with in_job_: a worker either sees this, or is seen by the loop below
  for (int spins = 0; in_job_.load() > 0; ++spins) {
    if (spins < kSpins) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
  current_pool = nullptr;
  one_job_.unlock();
}

bool ThreadPool::take_part(int worker, bool waited) {
  if (!job_open_.load(std::memory_order_acquire)) return false;
  in_job_.fetch_add(1);
  bool did = false;
  if (job_open_.load()) {
    const InFloatMode mode(mode_.load(std::memory_order_relaxed));
    did = job_.work(job_.self, worker);
    if (!did && waited) job_.waited(job_.self);
  }
  in_job_.fetch_sub(1);
  return did;
}

void ThreadPool::worker_main(int worker) {
  current_pool = this;
  current_worker = worker;
  if (auto* prepare = prepare_thread.load()) prepare();
  prepared_.fetch_add(1);
  Idle idle(*this);
  bool waited = false;
  while (true) {
    idle.reset();
    if (stop_.load(std::memory_order_acquire)) return;
    if (take_part(worker, std::exchange(waited, false)) || help(worker)) continue;
    waited = idle.wait(job_open_.load(std::memory_order_relaxed) ? 1000 : -1);
  }
}

// ---- loops

void ThreadPool::take_chunks(LoopSlot& slot) {
  inside_chunk = true;
  const int64_t chunks = (slot.n + slot.chunk - 1) / slot.chunk;
  for (int64_t i; (i = slot.next.fetch_add(1, std::memory_order_relaxed)) < chunks;) {
    if (slot.failed.load(std::memory_order_relaxed)) continue;
    const int64_t begin = i * slot.chunk;
    try {
      slot.body(slot.fn, begin, begin + slot.chunk < slot.n ? begin + slot.chunk : slot.n);
    } catch (...) {
      if (!slot.failed.exchange(true)) slot.error = std::current_exception();
    }
  }
  inside_chunk = false;
}

void ThreadPool::split(LoopSlot& slot, int64_t n, int64_t chunk, Body body, void* fn) {
  slot.n = n;
  slot.chunk = chunk;
  slot.body = body;
  slot.fn = fn;
  slot.mode = float_mode();
  slot.next.store(0, std::memory_order_relaxed);
  slot.failed.store(false, std::memory_order_relaxed);
  slot.open.store(true);  // seq_cst with `helpers`: either a helper sees it closed, or the wait below sees the helper
  open_loops_.fetch_add(1);
  signal();
  take_chunks(slot);
  slot.open.store(false);
  open_loops_.fetch_sub(1);
  while (slot.helpers.load() > 0) pause();
}

void ThreadPool::run(int64_t n, int64_t chunk, Body body, void* fn) {
  const bool worker = current_pool == this;
  const bool alone = workers() == 1 || inside_chunk || (!worker && caller_slot_.test_and_set());
  if (alone) {
    for (int64_t b = 0; b < n; b += chunk) body(fn, b, b + chunk < n ? b + chunk : n);
    return;
  }
  if (lost_threads_.load(std::memory_order_relaxed)) [[unlikely]]
    start_again();
  LoopSlot& slot = worker ? slots_[current_worker] : callers_slot();
  split(slot, n, chunk, body, fn);
  std::exception_ptr error = std::exchange(slot.error, nullptr);
  if (!worker) caller_slot_.clear();
  if (error) std::rethrow_exception(error);
}

bool ThreadPool::help(int worker) {
  if (open_loops_.load(std::memory_order_acquire) == 0) return false;
  bool helped = false;
  for (LoopSlot& slot : slots_) {
    if (&slot == &slots_[worker] || !slot.open.load(std::memory_order_acquire)) continue;
    slot.helpers.fetch_add(1);
    if (slot.open.load()) {
      const int64_t chunks = (slot.n + slot.chunk - 1) / slot.chunk;
      if (slot.next.load(std::memory_order_relaxed) < chunks) {
        const InFloatMode mode(slot.mode);
        take_chunks(slot);
        helped = true;
      }
    }
    slot.helpers.fetch_sub(1);
  }
  return helped;
}

}  // namespace anabranch
