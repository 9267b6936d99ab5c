// A futex mutex. Waiting callers sleep in the kernel, which decides which one wakes next. Without contention, lock and
// unlock are one atomic operation each, without a system call.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/futex.h"

namespace anabranch {

class FutexMutex {
 public:
  void lock() {
    uint32_t free = kFree;
    if (state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire)) return;
    while (state_.exchange(kContended, std::memory_order_acquire) != kFree) futex_wait(state_, kContended, -1);
  }
  bool try_lock() {
    uint32_t free = kFree;
    return state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire);
  }
  void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kContended) futex_wake_all(state_);
  }
  bool held() const { return state_.load(std::memory_order_relaxed) != kFree; }
  void reset() { state_.store(kFree); }  // in the child of a fork: the thread that held it does not exist

 private:
  static constexpr uint32_t kFree = 0, kHeld = 1, kContended = 2;  // kContended: held, and a thread may be parked
  std::atomic<uint32_t> state_{kFree};
};

}  // namespace anabranch
