#include "rpc/timer.h"

#include <utility>

namespace anabranch::rpc {

ThreadTimer::~ThreadTimer() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ThreadTimer::after(Milliseconds delay, std::function<void()> what) {
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable() && !over_) thread_ = std::thread([this] { work(); });
    due_.emplace(std::chrono::steady_clock::now() + delay, std::move(what));
  }
  changed_.notify_all();
}

void ThreadTimer::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (due_.empty()) {
      if (over_) return;
      changed_.wait(lock);
      continue;
    }
    const auto first = due_.begin();
    if (!over_ && std::chrono::steady_clock::now() < first->first) {
      changed_.wait_until(lock, first->first);
      continue;
    }
    const auto what = std::move(first->second);
    due_.erase(first);
    lock.unlock();
    what();
    lock.lock();
  }
}

}  // namespace anabranch::rpc
