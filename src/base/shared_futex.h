// base/futex.h for a word in memory that several processes share, whose threads may all sleep at it.
#pragma once
#include <atomic>
#include <cstdint>

namespace anabranch {
// Sleeps while word == expected, at most timeout_ms (negative: forever). Returns false if the timeout passed.
bool shared_futex_wait(std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ms);
void shared_futex_wake_all(std::atomic<uint32_t>& word);
}  // namespace anabranch
