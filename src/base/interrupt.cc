#include "base/interrupt.h"

#include <atomic>
#include <chrono>

namespace anabranch {
namespace {
std::atomic<void (*)()> question{nullptr};
}  // namespace

void set_interrupt_question(void (*ask)()) { question.store(ask); }

void check_interrupt() {
  using Clock = std::chrono::steady_clock;
  thread_local Clock::time_point asked = Clock::now();
  const auto ask = question.load(std::memory_order_relaxed);
  if (!ask) return;
  const auto now = Clock::now();
  if (now - asked < std::chrono::milliseconds(50)) return;
  asked = now;
  ask();
}

}  // namespace anabranch
