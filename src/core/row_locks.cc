#include "core/row_locks.h"

#include <thread>

#include "base/fork.h"

namespace anabranch {

std::atomic<int> RowLocks::sharing_;
std::atomic<uint8_t> RowLocks::bits_[1 << RowLocks::kBits];

// Training threads, and the locks that they held, exist in the parent only.
struct RowLocksAtFork {
  static void child() {
    if (RowLocks::sharing_.exchange(0) == 0) return;
    for (auto& bit : RowLocks::bits_) bit.store(0);
  }
};

namespace {
[[maybe_unused]] const bool hooked = (at_fork(ForkStage::kRows, {.child = RowLocksAtFork::child}), true);
}

RowLocks::HoldAll::HoldAll(bool on) : on_(on) {
  if (!on_) return;
  for (auto& bit : bits_) take(bit);  // always in this order, so that two callers cannot deadlock
}

RowLocks::HoldAll::~HoldAll() {
  if (!on_) return;
  for (auto& bit : bits_) bit.store(0, std::memory_order_release);
}

void RowLocks::wait_for(const std::atomic<uint8_t>& bit) {
  for (int spins = 0; bit.load(std::memory_order_relaxed) != 0; ++spins) {
    if (spins > 64) std::this_thread::yield();
  }
}

}  // namespace anabranch
