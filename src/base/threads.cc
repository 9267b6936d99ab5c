#include "base/threads.h"

#include <new>

#include "base/error.h"

namespace anabranch {

void Threads::start(int count, std::string_view what, const std::function<void(int)>& body,
                    const std::function<void()>& stop) {
  try {
    threads_.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) threads_.emplace_back([body, i] { body(i); });
  } catch (const std::exception& e) {  // no thread, or no memory for its start
    const size_t started = threads_.size();
    stop();
    join();
    AB_THROW(ResourceExhausted, "cannot start more threads: {} of {} {} were started ({})", started, count, what,
             e.what());
  }
}

void Threads::join() {
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

void Threads::forget() {
  for (std::thread& t : threads_) {
    if (t.joinable()) new (&t) std::thread();  // neither joined nor detached: the thread does not exist in this process
  }
  threads_.clear();
}

}  // namespace anabranch
