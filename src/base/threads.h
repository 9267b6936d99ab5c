// Threads that are joined whatever happens. A thread that the system does not give is an error that the caller can
// handle, and those that were started before it are not lost: the owner tells them to stop, then joins them.
// Not thread-safe: for the thread that owns them.
#pragma once
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

namespace anabranch {

class Threads {
 public:
  Threads() = default;
  ~Threads() { join(); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // ResourceExhausted, saying for what, when the system gives no thread; before that `stop` is called, which must make
  // all that run return, and they are joined.
  void start(int count, std::string_view what, const std::function<void(int)>& body, const std::function<void()>& stop);
  void join();
  // In the child of a fork: they are in the parent only.
  void forget();

 private:
  std::vector<std::thread> threads_;
};

}  // namespace anabranch
