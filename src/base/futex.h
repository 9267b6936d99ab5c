// Parking on a 32-bit word with a timeout, which std::atomic::wait does not offer.
#pragma once
#include <atomic>
#include <cstdint>

namespace anabranch {
// Sleeps while *word == expected, at most timeout_ms (negative: for ever). False: the timeout passed.
bool futex_wait(std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ms);
void futex_wake_all(std::atomic<uint32_t>& word);
}  // namespace anabranch
