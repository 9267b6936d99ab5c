#include "base/fork.h"

#include <pthread.h>

#include <array>
#include <atomic>

namespace anabranch {
namespace {

std::array<ForkHooks, static_cast<size_t>(ForkStage::kCount)> all_hooks;
std::atomic<uint32_t> fork_count{0};

void before() {
  for (const ForkHooks& hooks : all_hooks) {
    if (hooks.before) hooks.before();
  }
}

void backwards(void (*ForkHooks::*which)()) {
  for (auto it = all_hooks.rbegin(); it != all_hooks.rend(); ++it) {
    if ((*it).*which) ((*it).*which)();
  }
}

void parent() { backwards(&ForkHooks::parent); }

void child() {
  fork_count.fetch_add(1);
  backwards(&ForkHooks::child);
}

}  // namespace

void at_fork(ForkStage stage, const ForkHooks& hooks) {
  static const int installed = pthread_atfork(before, parent, child);
  static_cast<void>(installed);
  all_hooks[static_cast<size_t>(stage)] = hooks;
}

uint32_t forks() { return fork_count.load(std::memory_order_relaxed); }

}  // namespace anabranch
