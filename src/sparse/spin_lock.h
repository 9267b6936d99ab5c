// A lock for work of microseconds that threads rarely meet at. Who waits gives its core away after a while.
#pragma once
#include <atomic>

namespace anabranch::sparse {

class SpinLock {
 public:
  void lock();
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace anabranch::sparse
