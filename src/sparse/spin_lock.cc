#include "sparse/spin_lock.h"

#include <chrono>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace anabranch::sparse {
namespace {

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

void SpinLock::rest(int* spins) {
  if (++*spins > 4096) {  // a table that is being written to a file
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  } else if (*spins > 256) {
    std::this_thread::yield();
  } else {
    pause();
  }
}

void SpinLock::lock() {
  if (!taken_.exchange(true, std::memory_order_acquire)) return;
  ++waiting_;
  for (int spins = 0; taken_.exchange(true, std::memory_order_acquire);) {
    while (taken_.load(std::memory_order_relaxed)) rest(&spins);
  }
  --waiting_;
}

// Callers that arrive between the check and the exchange wait for one holder.
void SpinLock::lock_after_others() {
  for (int spins = 0; waiting_ > 0 || taken_.exchange(true, std::memory_order_acquire);) rest(&spins);
}

}  // namespace anabranch::sparse
