// A lock for work of microseconds that threads rarely meet at. Who waits gives its core away after a while. Who comes
// again and again, to whom others are more important, lets those go first that wait: they wait for one turn of it, not
// for as many as there is luck.
#pragma once
#include <atomic>

namespace anabranch::sparse {

class SpinLock {
 public:
  void lock();
  void lock_after_others();
  int waiting() const { return waiting_.load(); }  // in lock()
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static void rest(int* spins);

  std::atomic<bool> taken_{false};
  std::atomic<int> waiting_{0};
};

}  // namespace anabranch::sparse
