#include "core/row_locks.h"

#include <thread>

namespace anabranch {

thread_local bool RowLocks::shared_ = false;
std::atomic<uint8_t> RowLocks::bits_[1 << RowLocks::kBits];

void RowLocks::wait_for(const std::atomic<uint8_t>& bit) {
  for (int spins = 0; bit.load(std::memory_order_relaxed) != 0; ++spins) {
    if (spins > 64) std::this_thread::yield();
  }
}

}  // namespace anabranch
