// A condition variable for systems with the C++ library of GCC 11: the wait of std::condition_variable asks for that of
// GCC 12 where GCC 12 has compiled it. All else of it is inline.
#pragma once
#include <pthread.h>

#include <condition_variable>
#include <mutex>

namespace anabranch {

class Condition : public std::condition_variable {
 public:
  void wait(std::unique_lock<std::mutex>& lock) { pthread_cond_wait(native_handle(), lock.mutex()->native_handle()); }
  template <class Done> void wait(std::unique_lock<std::mutex>& lock, Done done) {
    while (!done()) wait(lock);
  }
};

}  // namespace anabranch
