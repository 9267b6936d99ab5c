// The state that a plug-in opens: at most one per process, and unusable in forked processes.
#pragma once
#include <pthread.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "failure.h"

namespace anabranch::plugin {

template <class T> class Opened {
 public:
  explicit Opened(const char* name) : name_(name) {}

  // make() makes it; it stays until close().
  template <class Make> void open(const ab_host* host, Make&& make) {
    const std::lock_guard lock(mutex_);
    check_fork();
    need(!there_, name_, " is open already");
    need(!host || host->size >= sizeof(ab_host), "ab_host must be of ", sizeof(ab_host), " bytes");
    watch_forks();
    there_ = make().release();
  }
  std::unique_ptr<T> close() {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<T> closed(&get());
    there_ = nullptr;
    return closed;
  }
  // Unavailable when it is not open, or in a forked process.
  T& get() const {
    check_fork();
    T* there = there_;
    if (!there) [[unlikely]]
      fail(AB_UNAVAILABLE, name_, " is not open");
    return *there;
  }
  T* look() const { return there_; }  // null: not open

 private:
  void check_fork() const {
    if (forked_) [[unlikely]]
      fail(AB_UNAVAILABLE, "this process was forked after ", name_, " had been opened");
  }
  // A forked process has the objects, but neither what they stand for on the devices nor the threads of the parent.
  void watch_forks() {
    static std::once_flag once;
    static Opened* watched = nullptr;
    std::call_once(once, [this] {
      watched = this;
      pthread_atfork(nullptr, nullptr, [] { watched->forked_ = watched->there_.load() != nullptr; });
    });
  }

  const char* const name_;
  std::mutex mutex_;
  std::atomic<T*> there_{nullptr};
  std::atomic<bool> forked_{false};
};

}  // namespace anabranch::plugin
