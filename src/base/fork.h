// Prepares children of fork(), in which only the forking thread exists and memory is as the other threads left it. The
// owner of a process-wide lock holds it across the fork, and state that depended on other threads is rebuilt in the
// child.
#pragma once
#include <cstdint>

namespace anabranch {

struct ForkHooks {
  void (*before)() = nullptr;  // in the forking thread
  void (*parent)() = nullptr;  // afterwards, in the parent
  void (*child)() = nullptr;   // afterwards, in the child
};

// `before` hooks run in this order, the others in reverse: waiting for steps to end comes before taking the locks that
// a step needs.
enum class ForkStage { kRuns, kPools, kScopes, kRows, kFlags, kWatch, kInterpreter, kCount };

void at_fork(ForkStage stage, const ForkHooks& hooks);  // one per stage, before main
// Number of forks between the first process and this one; an object with another number was made by a parent process.
uint32_t forks();

}  // namespace anabranch
