// Counts the calls to the heap, to locks and to the kernel's waiting that are made while counting is on, in all
// threads; those made from inside the kernel library (oneDNN) or the simulated device apart.
#pragma once
#include <atomic>

namespace anabranch::steady {

struct Calls {
  std::atomic<int> allocations{0}, library_allocations{0}, locks{0}, library_locks{0}, waits{0}, wakes{0};
};

Calls& calls();
void count(bool on);       // in all threads
void count_here(bool on);  // in this one, which does everything there is to do
bool can_count();          // not under a sanitizer, which takes the same places

}  // namespace anabranch::steady
