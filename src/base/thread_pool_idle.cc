// How workers wait: spinning, checking now and then, parked in the kernel.
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/flags.h"
#include "base/futex.h"
#include "base/thread_pool.h"

namespace anabranch {
namespace {

constexpr auto kWatch = std::chrono::microseconds(200);  // a node longer than this is worth a wake-up afterwards
constexpr int kLooks = 16;                               // between two readings of the clock
constexpr int64_t kLongestSpinUs = int64_t{1} << 40;     // the clock can still count it

}  // namespace

void ThreadPool::signal() {
  signal_.fetch_add(1);
  // The thread that clears the mark wakes the others: signals before they run again need no second call.
  if (!parked_.load() || !parked_.exchange(false)) return;
  // Once more: a thread that set the mark before it was cleared and is not yet asleep sees another value and stays
  // awake.
  signal_.fetch_add(1);
  futex_wake_all(signal_);
}

void ThreadPool::Idle::reset() { seen_ = pool_.signal_.load(std::memory_order_acquire); }

bool ThreadPool::Idle::spin() const {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::microseconds(std::clamp<int64_t>(Flags::spin_us(), 0, kLongestSpinUs));
  do {
    for (int look = 0; look < kLooks; ++look) {
      if (pool_.signal_.load(std::memory_order_acquire) != seen_) return true;
      _mm_pause();
    }
  } while (Clock::now() < end);
  return false;
}

bool ThreadPool::Idle::wait(int64_t timeout_ms) {
  if (pool_.spins_ && spin()) return false;
  const uint32_t job = pool_.job_number_.load(std::memory_order_relaxed);
  const bool in_job = pool_.job_open_.load(std::memory_order_relaxed);
  if (in_job && pool_.spins_ && std::exchange(parked_in_, job) == job && watch()) return false;
  pool_.parked_.store(true);  // before the kernel compares the word: a signal sees the mark, or the word differs
  pool_.parks_.fetch_add(1, std::memory_order_relaxed);
  const bool woken = futex_wait(pool_.signal_, seen_, timeout_ms);
  // A worker that slept before the job began has had its wake-up by now.
  parked_in_ = pool_.job_number_.load(std::memory_order_relaxed);
  return !woken;
}

bool ThreadPool::Idle::watch() const {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + kWatch;
  do {
    for (int look = 0; look < kLooks; ++look) {
      if (pool_.signal_.load(std::memory_order_acquire) != seen_) return true;
      if (!pool_.job_open_.load(std::memory_order_relaxed)) return true;
      std::this_thread::yield();
    }
  } while (Clock::now() < end);
  return false;
}

}  // namespace anabranch
