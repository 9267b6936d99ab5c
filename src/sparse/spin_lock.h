// A lock for microseconds of work with rare contention. A waiting thread yields its core after a while. A caller that
// takes the lock repeatedly, but has lower priority, lets waiting threads go first, so that they wait for one of its
// critical sections and not for several.
#pragma once
#include <atomic>

namespace anabranch::sparse {

class SpinLock {
 public:
  void lock();
  void lock_after_others();
  int waiting() const { return waiting_.load(); }  // threads in lock()
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static void rest(int* spins);

  std::atomic<bool> taken_{false};
  std::atomic<int> waiting_{0};
};

}  // namespace anabranch::sparse
