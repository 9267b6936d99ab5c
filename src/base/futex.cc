#include "base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "base/shared_futex.h"

namespace anabranch {

namespace {

bool wait(std::atomic<uint32_t>& word, int how, uint32_t expected, int64_t timeout_ms) {
  timespec limit{timeout_ms / 1000, (timeout_ms % 1000) * 1000000};
  const long rc = syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), how, expected,
                          timeout_ms < 0 ? nullptr : &limit, nullptr, 0);
  return !(rc == -1 && errno == ETIMEDOUT);
}

void wake_all(std::atomic<uint32_t>& word, int how) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), how, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

bool futex_wait(std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ms) {
  return wait(word, FUTEX_WAIT_PRIVATE, expected, timeout_ms);
}
void futex_wake_all(std::atomic<uint32_t>& word) { wake_all(word, FUTEX_WAKE_PRIVATE); }

bool shared_futex_wait(std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ms) {
  return wait(word, FUTEX_WAIT, expected, timeout_ms);
}
void shared_futex_wake_all(std::atomic<uint32_t>& word) { wake_all(word, FUTEX_WAKE); }

}  // namespace anabranch
