// What a child of fork() needs to work: only the thread that forked is in it, and memory is as the others left it. Who
// owns a lock of the whole process holds it over the fork, and what threads stood behind is made anew in the child.
#pragma once
#include <cstdint>

namespace anabranch {

struct ForkHooks {
  void (*before)() = nullptr;  // in the thread that forks
  void (*parent)() = nullptr;  // then, there
  void (*child)() = nullptr;   // and in the child
};

// `before` is called in this order and the others backwards: who waits for steps to end comes before the locks that a
// step takes.
enum class ForkStage { kRuns, kTeams, kScopes, kRows, kFlags, kWatch, kInterpreter, kCount };

void at_fork(ForkStage stage, const ForkHooks& hooks);  // one for each stage, before main
// Forks between the start of the first process and this one: what holds another number was made by a parent.
uint32_t forks();

}  // namespace anabranch
