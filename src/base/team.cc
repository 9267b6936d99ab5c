#include "base/team.h"

#include <immintrin.h>

#include <map>
#include <utility>

#include "base/cores.h"
#include "base/error.h"
#include "base/futex.h"

namespace anabranch {
namespace {

constexpr int kSpins = 4000;      // about 50-100 us of pauses: two wake-ups' worth

thread_local Team* current_team = nullptr;
thread_local int current_worker = 0;
thread_local bool inside_piece = false;

}  // namespace

Team::Team(int workers) : slots_(workers) {
  // More workers than cores: whoever spins keeps the core from whoever works.
  spin_limit_ = workers > usable_cores() ? 0 : kSpins;
  for (int w = 1; w < workers; ++w) threads_.emplace_back([this, w] { worker_main(w); });
}

Team::~Team() {
  stop_.store(true);
  epoch_.fetch_add(1);
  futex_wake_all(epoch_);
  for (auto& t : threads_) t.join();
}

Team& Team::of_size(int workers) {
  if (workers <= 0) workers = usable_cores();
  AB_CHECK(workers <= kMaxWorkers, InvalidArgument, "num_threads is {}, at most {} are allowed", workers, kMaxWorkers);
  static std::mutex mutex;
  // Never destroyed: at process exit other statics may still run a program.
  static auto& teams = *new std::map<int, std::unique_ptr<Team>>();
  const std::lock_guard lock(mutex);
  auto& team = teams[workers];
  if (!team) team = std::make_unique<Team>(workers);
  return *team;
}

bool Team::inside() { return current_team != nullptr; }

void Team::run_all(Work work, void* self) {
  const std::lock_guard lock(one_at_a_time_);
  Team* outer_team = std::exchange(current_team, this);
  const int outer_worker = std::exchange(current_worker, 0);
  if (workers() > 1) {
    work_ = work;
    self_ = self;
    unfinished_.store(workers() - 1, std::memory_order_relaxed);
    epoch_.fetch_add(1);  // seq_cst: ordered against `sleeping_` in worker_main
    if (sleeping_.load() > 0) futex_wake_all(epoch_);
  }
  work(self, 0);
  for (int spins = 0; unfinished_.load(std::memory_order_acquire) > 0; ++spins) {
    if (spins < kSpins && spin_limit_) {
      _mm_pause();
    } else {
      std::this_thread::yield();
    }
  }
  current_team = outer_team;
  current_worker = outer_worker;
}

void Team::worker_main(int worker) {
  current_team = this;
  current_worker = worker;
  uint32_t seen = 0;
  while (true) {
    for (int spins = 0; epoch_.load(std::memory_order_acquire) == seen && spins < spin_limit_; ++spins) _mm_pause();
    while (epoch_.load() == seen) {
      sleeping_.fetch_add(1);
      futex_wait(epoch_, seen, -1);
      sleeping_.fetch_sub(1);
    }
    seen = epoch_.load(std::memory_order_acquire);
    if (stop_.load()) return;
    work_(self_, worker);
    unfinished_.fetch_sub(1, std::memory_order_release);
  }
}

void Team::take_pieces(LoopSlot& slot) {
  inside_piece = true;
  const int64_t pieces = (slot.n + slot.piece - 1) / slot.piece;
  for (int64_t i; (i = slot.next.fetch_add(1, std::memory_order_relaxed)) < pieces;) {
    if (slot.failed.load(std::memory_order_relaxed)) continue;
    const int64_t begin = i * slot.piece;
    try {
      slot.body(slot.fn, begin, begin + slot.piece < slot.n ? begin + slot.piece : slot.n);
    } catch (...) {
      if (!slot.failed.exchange(true)) slot.error = std::current_exception();
    }
  }
  inside_piece = false;
}

void Team::run(int64_t n, int64_t piece, Body body, void* fn) {
  if (current_team != this || inside_piece || workers() == 1) {
    for (int64_t b = 0; b < n; b += piece) body(fn, b, b + piece < n ? b + piece : n);
    return;
  }
  LoopSlot& slot = slots_[current_worker];
  slot.n = n;
  slot.piece = piece;
  slot.body = body;
  slot.fn = fn;
  slot.next.store(0, std::memory_order_relaxed);
  slot.failed.store(false, std::memory_order_relaxed);
  slot.open.store(true);  // seq_cst with `helpers`: either a helper sees it closed, or the wait below sees the helper
  open_loops_.fetch_add(1);
  signal();
  take_pieces(slot);
  slot.open.store(false);
  open_loops_.fetch_sub(1);
  while (slot.helpers.load() > 0) {
    if (spin_limit_) {
      _mm_pause();
    } else {
      std::this_thread::yield();
    }
  }
  if (slot.failed.load(std::memory_order_relaxed)) std::rethrow_exception(std::exchange(slot.error, nullptr));
}

bool Team::help(int worker) {
  if (open_loops_.load(std::memory_order_acquire) == 0) return false;
  bool helped = false;
  for (int w = 0; w < workers(); ++w) {
    LoopSlot& slot = slots_[w];
    if (w == worker || !slot.open.load(std::memory_order_acquire)) continue;
    slot.helpers.fetch_add(1);
    if (slot.open.load()) {
      take_pieces(slot);
      helped = true;
    }
    slot.helpers.fetch_sub(1);
  }
  return helped;
}

void Team::signal() {
  signal_.fetch_add(1);
  if (parked_.load() > 0) futex_wake_all(signal_);
}

bool Team::Idle::wait() {
  if (spins_ < team_.spin_limit_) {
    ++spins_;
    _mm_pause();
    return false;
  }
  team_.parked_.fetch_add(1);
  const bool woken = futex_wait(team_.signal_, seen_, 1000);
  team_.parked_.fetch_sub(1);
  reset();
  return !woken;
}

}  // namespace anabranch
