// Delayed calls as a dependency, like the clock.
#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "rpc/clock.h"
#include "rpc/transport.h"

namespace anabranch::rpc {

class Timer {
 public:
  virtual ~Timer() = default;
  virtual void after(Milliseconds delay, std::function<void()> what) = 0;
};

// With a separate thread, started at the first call. Pending calls run when it is destroyed.
class ThreadTimer final : public Timer {
 public:
  ThreadTimer() = default;
  ~ThreadTimer() override;
  ThreadTimer(const ThreadTimer&) = delete;
  void after(Milliseconds delay, std::function<void()> what) override;

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<TimePoint, std::function<void()>> due_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace anabranch::rpc
