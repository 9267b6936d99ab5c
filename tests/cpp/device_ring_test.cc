// Threads that stand for processes, each with its own simulated device, compute together on these.
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "base/error.h"
#include "base/flags.h"
#include "comm/device_ring.h"
#include "core/tensor.h"
#include "device/pool.h"
#include "device/settle.h"

namespace anabranch::comm {
namespace {

using device::Communicator, device::Devices;

constexpr int64_t kCount = 300;
constexpr size_t kBytes = kCount * sizeof(float);

// Ring number r of this process is the one of rank r.
class DeviceRings : public testing::Test {
 public:
  static constexpr int kMost = 4;

  void SetUp() override {
    set_flag("FLAGS_device_plugin", std::string("simdevice"));
    set_flag("FLAGS_simdevice_devices", int64_t{kMost});
    if (!Devices::offered()) GTEST_SKIP() << "the simulated device was not built";
    if (Devices::get().count() < 2) GTEST_SKIP() << "the devices were opened with less of them";
    size = std::min(Devices::get().count(), 3);
    join();
  }
  void TearDown() override { forget_rings(); }

  void join() {
    std::vector<std::string> endpoints;
    for (int r = 0; r < size; ++r) endpoints.push_back(fmt::format("host{}:1", r));
    auto wires = local_wires(size);
    for (int r = 0; r < size; ++r) {
      keep_ring(
          r, std::make_shared<Group>(std::make_unique<Peers>(r, endpoints, std::move(wires[r]), Milliseconds(2000))));
    }
  }

  // The error of each rank; "": none.
  std::vector<std::string> on_all(const std::function<void(int)>& what) const {
    std::vector<std::string> errors(size);
    std::vector<std::thread> threads;
    for (int r = 0; r < size; ++r) {
      threads.emplace_back([&, r] {
        try {
          what(r);
        } catch (const Error& e) {
          errors[r] = e.message();
        }
      });
    }
    for (auto& t : threads) t.join();
    return errors;
  }
  void expect_fine(const std::function<void(int)>& what) const {
    for (const auto& e : on_all(what)) EXPECT_EQ(e, "");
  }

  int size = 0;
};

// A node of one rank: a buffer on its device, full of numbers of that rank, that becomes what is made of all.
struct Node {
  explicit Node(int r, int number = 0)
      : rank(r), ring(std::make_shared<DeviceRing>(r, number)), memory(device::allocate(Place::cuda(r), kBytes)) {}

  ab_queue* queue() const { return Devices::get().queue(rank, device::QueueKind::kCompute); }
  What about(int64_t elems = kCount, const char* name = "w") const {
    What what(CollectiveKind::kAllReduce, DType::kFloat32, name);
    what.add(Shape{elems});
    return what;
  }
  void fill(float value) {
    const std::shared_ptr<void> from = device::allocate(Place::pinned(), kBytes);
    std::fill_n(static_cast<float*>(from.get()), kCount, value);
    copy(memory.get(), rank, from.get(), AB_HOST_MEMORY);
    wait();
  }
  void put() {
    Communicator::Call call{AB_ALL_REDUCE_SUM, AB_FLOAT32, kCount, kBytes, 0, {{memory.get(), memory.get()}}};
    ring->run(queue(), {&call, 1});
  }
  void sum() {
    ring->agree(about(), rank);
    put();
  }
  float held() {
    const std::shared_ptr<void> to = device::allocate(Place::pinned(), kBytes);
    copy(to.get(), AB_HOST_MEMORY, memory.get(), rank);
    wait();
    return static_cast<float*>(to.get())[kCount - 1];
  }
  void copy(void* to, int to_device, const void* from, int from_device) const {
    Devices::get().check(Devices::get().api().copy(queue(), to, to_device, from, from_device, kBytes), "copying");
  }
  void wait() const {
    device::Lookout* const lookout = ring.get();
    device::Event passed(Devices::get(), rank);
    passed.record(queue());
    try {
      passed.wait({&lookout, 1});
    } catch (const Error&) {
      device::settle(Devices::get(), rank, {&lookout, 1});
      throw;
    }
  }

  const int rank;
  const std::shared_ptr<DeviceRing> ring;
  const std::shared_ptr<void> memory;
};

TEST_F(DeviceRings, SumsStayOnTheDevicesFromStepToStep) {
  expect_fine([&](int r) {
    Node first(r), second(r, 1), third(r);
    for (int step = 0; step < 20; ++step) {
      for (Node* node : {&first, &second, &third}) node->fill(static_cast<float>(r + 1 + step));
      for (Node* node : {&first, &second, &third}) node->sum();
      const int sum = size * (size + 1) / 2 + step * size;
      for (Node* node : {&first, &second, &third}) EXPECT_EQ(node->held(), static_cast<float>(sum));
    }
  });
}

TEST_F(DeviceRings, DisagreementsAreReportedBeforeAnythingIsPut) {
  std::vector<std::unique_ptr<Node>> nodes;
  for (int r = 0; r < size; ++r) nodes.push_back(std::make_unique<Node>(r));
  for (const auto& error : on_all([&](int r) { nodes[r]->ring->agree(nodes[r]->about(r == 1 ? 7 : kCount), r); })) {
    EXPECT_NE(error.find("processes disagree"), std::string::npos) << error;
    EXPECT_NE(error.find("w [7], root 0, on devices"), std::string::npos) << error;
  }
  // One computes on its device, the others do not.
  const auto mixed = on_all([&](int r) {
    if (r > 0) return nodes[r]->ring->agree(nodes[r]->about(), r);
    ring(r)->call([&](Peers& peers) { Collective().agree(peers, nodes[r]->about()); });
  });
  for (const auto& error : mixed) EXPECT_NE(error.find("processes disagree"), std::string::npos) << error;
  expect_fine([&](int r) {
    nodes[r]->fill(1);
    nodes[r]->sum();
    EXPECT_EQ(nodes[r]->held(), static_cast<float>(size));
  });
}

TEST_F(DeviceRings, MissingProcessesAreNamedByTheDeadline) {
  const auto errors = on_all([&](int r) {
    if (r != 1) Node(r).sum();
  });
  EXPECT_NE(errors[0].find("rank 1 (host1:1) has not come"), std::string::npos) << errors[0];
}

// After the agreement no thread of the host waits for the others.
TEST_F(DeviceRings, WhatIsUnderWayEndsWhenTheGroupFails) {
  const auto errors = on_all([&](int r) {
    Node node(r);
    node.fill(1);
    node.sum();
    node.wait();
    node.ring->agree(node.about(), r);
    if (r == 1) return ring(r)->fail("gone");
    node.put();
    ring(r)->fail("rank 1 (host1:1) is gone");
    node.wait();
  });
  for (int r = 0; r < size; ++r) {
    if (r == 1) continue;
    EXPECT_NE(errors[r].find("rank 1 (host1:1) is gone; ring"), std::string::npos) << errors[r];
    EXPECT_NE(errors[r].find("all_reduce sum of 300 numbers float32, w [300]"), std::string::npos) << errors[r];
  }
  join();  // the devices work on, in another group
  expect_fine([&](int r) {
    Node node(r);
    node.fill(2);
    node.sum();
    EXPECT_EQ(node.held(), static_cast<float>(2 * size));
  });
}

// A node of each rank, on a communicator that has worked and that rank 1 gives up after all have agreed to use it
// again.
class DeviceRingsGivenUp : public DeviceRings {
 public:
  std::vector<std::unique_ptr<Node>> after_rank_1_has_given_up() const {
    std::vector<std::unique_ptr<Node>> nodes;
    for (int r = 0; r < size; ++r) nodes.push_back(std::make_unique<Node>(r));
    expect_fine([&](int r) { nodes[r]->sum(), nodes[r]->wait(); });
    expect_fine([&](int r) {
      nodes[r]->ring->agree(nodes[r]->about(), r);
      if (r != 1) return;
      nodes[r]->put();
      nodes[r]->ring->give_up();
      nodes[r]->wait();
    });
    return nodes;
  }
};

TEST_F(DeviceRingsGivenUp, ACommunicatorIsMadeAgainByAll) {
  const auto nodes = after_rank_1_has_given_up();
  expect_fine([&](int r) {
    nodes[r]->fill(3);
    nodes[r]->sum();
    EXPECT_EQ(nodes[r]->held(), static_cast<float>(3 * size));
  });
}

// The error of a call that is put after another process has gone names the process, not only its rank on the devices.
TEST_F(DeviceRingsGivenUp, TheNextCallNamesTheProcess) {
  const auto nodes = after_rank_1_has_given_up();
  const auto errors = on_all([&](int r) {
    if (r != 1) nodes[r]->put();
  });
  for (int r = 0; r < size; ++r) {
    if (r == 1) continue;
    EXPECT_NE(errors[r].find("rank 1 (host1:1): "), std::string::npos) << errors[r];
    EXPECT_NE(errors[r].find("all_reduce sum of 300 numbers float32, w [300]"), std::string::npos) << errors[r];
  }
}

// The queue of the call waits for another communicator, which also waits for the rank that has given up.
TEST_F(DeviceRings, AFailedCallDoesNotWaitForAnotherCommunicator) {
  std::vector<std::unique_ptr<Node>> first, second;
  for (int r = 0; r < size; ++r) {
    first.push_back(std::make_unique<Node>(r));
    second.push_back(std::make_unique<Node>(r, 1));
  }
  expect_fine([&](int r) { first[r]->sum(), second[r]->sum(), second[r]->wait(); });
  set_flag("FLAGS_device_deadline", int64_t{20000});
  expect_fine([&](int r) {
    first[r]->ring->agree(first[r]->about(), r);
    second[r]->ring->agree(second[r]->about(), r);
    if (r != 1) return first[r]->put();
    second[r]->put();
    second[r]->ring->give_up();
    second[r]->wait();
  });
  const auto begun = std::chrono::steady_clock::now();
  const auto errors = on_all([&](int r) {
    if (r != 1) second[r]->put();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
  EXPECT_NE(errors[0].find("rank 1 (host1:1): "), std::string::npos) << errors[0];
  expect_fine([&](int r) {
    first[r]->ring->give_up();
    first[r]->wait();
  });
  set_flag("FLAGS_device_deadline", int64_t{600000});
}

TEST_F(DeviceRings, AWaitThatLastsTooLongGivesUp) {
  expect_fine([&](int r) { Node(r).sum(); });
  set_flag("FLAGS_device_deadline", int64_t{200});
  const auto errors = on_all([&](int r) {
    Node node(r);
    node.ring->agree(node.about(), r);
    if (r == 0) {
      node.put();
      node.wait();
    }
  });
  set_flag("FLAGS_device_deadline", int64_t{600000});
  EXPECT_NE(errors[0].find("not passed within 200 ms"), std::string::npos) << errors[0];
  expect_fine([&](int r) {
    Node node(r);
    node.fill(1);
    node.sum();
    EXPECT_EQ(node.held(), static_cast<float>(size));
  });
}

}  // namespace
}  // namespace anabranch::comm
