#include "ops/kernels/workspace.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "core/tensor.h"

namespace anabranch {
namespace {

constexpr size_t kStores = 64;  // kernels that run at once; further kernels allocate while they run
constexpr size_t kLine = 64;

}  // namespace

struct Workspace::Store {
  std::atomic<bool> taken{false};
  std::vector<std::shared_ptr<void>> blocks;  // the last one is in use
  size_t size = 0, used = 0;                  // of the last block
  size_t needed = 0;                          // bytes requested in total

  void* take(size_t bytes) {
    const size_t rounded = std::max(kLine, (bytes + kLine - 1) / kLine * kLine);
    if (used + rounded > size) {
      const size_t next = std::max(rounded, blocks.empty() ? needed : size_t{0});
      blocks.push_back(allocate_buffer(next));
      needed = blocks.size() == 1 ? next : needed + next;
      size = next;
      used = 0;
    }
    used += rounded;
    return static_cast<char*>(blocks.back().get()) + used - rounded;
  }

  // A request that needed several blocks gets one of their total size next time.
  void give_back() {
    if (blocks.size() > 1) {
      blocks.clear();
      size = 0;
    }
    used = 0;
  }
};

// Never destroyed: a kernel may be running while the process ends.
Workspace::Store* Workspace::stores() {
  static Store* const all = new Store[kStores];
  return all;
}

// The first free one, so that successive kernels share one.
Workspace::Workspace() : store_(nullptr) {
  for (size_t i = 0; i < kStores && !store_; ++i) {
    Store& s = stores()[i];
    if (!s.taken.load(std::memory_order_relaxed) && !s.taken.exchange(true, std::memory_order_acquire)) store_ = &s;
  }
  if (!store_) store_ = new Store;
}

Workspace::~Workspace() {
  store_->give_back();
  if (store_ < stores() || store_ >= stores() + kStores) {
    delete store_;
  } else {
    store_->taken.store(false, std::memory_order_release);
  }
}

void* Workspace::take(size_t bytes) { return store_->take(bytes); }

}  // namespace anabranch
