// LeakSanitizer stops all threads when a test program ends, and faults on one that is just ending itself, as threads of
// gRPC do once its connections are closed. So a program waits until its threads are the same for a while.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

namespace {

std::set<std::string> threads() {
  std::set<std::string> found;
  std::error_code gone;
  for (std::filesystem::directory_iterator it("/proc/self/task", gone), end; it != end; it.increment(gone)) {
    found.insert(it->path().filename());
  }
  return found;
}

class RestingThreads : public testing::Environment {
  void TearDown() override {
    auto before = threads();
    for (int tries = 0; before.size() > 1 && tries < 40; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      auto now = threads();
      if (now == before) return;
      before = std::move(now);
    }
  }
};

const auto* const resting = testing::AddGlobalTestEnvironment(new RestingThreads);

}  // namespace
