// Nodes that compute together with other processes, as the group's thread sees them.
#include "ops/distributed/together.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

namespace anabranch::distributed {
namespace {

struct NoWork {
  void check(const KernelContext&, const comm::Group&) const {}
  void run(const KernelContext&, comm::Peers&, comm::Collective&) const {}
};

// Told of a node's end, it keeps the thread that tells for long enough for the waiting one to give everything up.
class SlowSink final : public CompletionSink {
 public:
  void complete(int, std::exception_ptr) noexcept override {
    ended.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  std::promise<void> ended;
};

TEST(TogetherTest, TheGroupsThreadNeverEndsItsOwnGroup) {
  comm::keep_ring(0, std::make_shared<comm::Group>(
                         std::make_unique<comm::Peers>(0, std::vector<std::string>{"127.0.0.1:1"},
                                                       std::move(comm::local_wires(1)[0]), comm::Milliseconds(1000))));
  const auto sink = std::make_shared<SlowSink>();
  Kernel kernel = together(0, NoWork{});
  AsyncContext context(KernelContext{}, Completion(sink, 0));
  context.call = KernelContext::Call::kLater;
  kernel(context);
  EXPECT_TRUE(context.taken());
  sink->ended.get_future().wait();
  kernel = Kernel();
  const std::weak_ptr<comm::Group> group = comm::find_ring(0);
  comm::forget_rings();
  EXPECT_TRUE(group.expired());  // ended here: by the time that the other thread wakes there is nothing left to end
}

}  // namespace
}  // namespace anabranch::distributed
