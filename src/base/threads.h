// Threads that are always joined. If the system refuses a thread, that is an error that the caller can handle, and
// threads started earlier are not lost: the owner tells them to stop and joins them. Not thread-safe: for the owning
// thread only.
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

  // ResourceExhausted, naming the purpose, if the system refuses a thread. `stop`, which must make all running threads
  // return, is called first, and they are joined.
  void start(int count, std::string_view what, const std::function<void(int)>& body, const std::function<void()>& stop);
  void join();
  // In the child of a fork: they are in the parent only.
  void forget();

 private:
  std::vector<std::thread> threads_;
};

}  // namespace anabranch
