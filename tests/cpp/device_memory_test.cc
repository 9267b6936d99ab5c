// Memory of temporaries of devices, on the simulated one: blocks are reused, in an arena for each device, and the
// accesses of two queues to one block keep their order by the edges that sharing adds.
#include <gtest/gtest.h>
#include <set>

#include "base/flags.h"
#include "device/devices.h"
#include "device/pool.h"
#include "exec/memory_plan.h"
#include "exec/run.h"
#include "opdef/library_call.h"
#include "ops/device/args.h"

namespace anabranch {
namespace {

using device::QueueKind;

bool open_simulated(int seed) {
  set_flag("FLAGS_device_plugin", std::string("simdevice"));
  set_flag("FLAGS_simdevice_seed", int64_t{seed});
  return device::Devices::offered();
}
#define NEEDS_DEVICES(seed)                               \
  if (!open_simulated(seed))                              \
    GTEST_SKIP() << "the simulated device was not built"; \
  else                                                    \
    device::Devices::get()

constexpr int64_t kBytes = 1 << 12;

// Three nodes: the first fills `first` and the last fills `last`, in the queue of kernels; between them another queue
// copies `first` to the host.
struct ThreeNodes {
  Value first, last, host;
  std::vector<Temporary> temporaries{{&first, 0, 1, {0, 1}, Place::cuda(0)}, {&last, 2, 2, {2}, Place::cuda(0)}};
  MemoryPlan memory;

  ThreeNodes() {
    host.as<Tensor>().resize(Shape{kBytes}, {DType::kUInt8, Place::pinned()});
    const MemoryPlan::Shaping without_memory(temporaries);
    for (Value* v : {&first, &last}) v->as<Tensor>().resize(Shape{kBytes}, {DType::kUInt8, Place::cuda(0)});
    edges = memory.place(temporaries, /*parallel=*/true);
  }

  static NodeSpec fills(Value* to, int byte) {
    NodeSpec spec;
    spec.queue_index = queue_index_of(0, QueueKind::kCompute);
    spec.outs = {to};
    spec.kernel = Kernel([byte](KernelContext& c) {
      const DeviceContext& queued = DeviceContext::of(c);
      Tensor& t = c[Out{0, 1}];
      queued.devices().check(queued.devices().api().fill(queued.queue(), t.mutable_raw(), byte, t.bytes()), "filling");
    });
    return spec;
  }

  Plan plan() { return Plan(specs()); }
  std::vector<NodeSpec> specs() {
    std::vector<NodeSpec> specs;
    specs.push_back(fills(&first, 1));
    NodeSpec copies;
    copies.queue_index = queue_index_of(0, QueueKind::kDown);
    copies.ins = {&first};
    copies.outs = {&host};
    copies.kernel = Kernel([](KernelContext& c) { DeviceContext::of(c).copy(c[Out{0, 1}], c[In{0, 1}]); });
    specs.push_back(std::move(copies));
    specs.push_back(fills(&last, 2));
    specs[0].writes = specs[1].reads = {0};
    specs[1].writes = {1};
    specs[2].writes = {2};
    return specs;
  }

  std::vector<std::pair<int, int>> edges;
};

TEST(DeviceMemory, BlocksOfADeviceAreReusedAndQueuesWait) {
  NEEDS_DEVICES(0);
  ThreeNodes nodes;
  EXPECT_EQ(nodes.first.tensor().raw(), nodes.last.tensor().raw());
  EXPECT_EQ(nodes.memory.bytes(Place::cuda(0)), kBytes);
  EXPECT_EQ(nodes.memory.unshared_bytes(), 2 * kBytes);
  EXPECT_EQ(nodes.edges, (std::vector<std::pair<int, int>>{{0, 2}, {1, 2}}));
  Plan plan = nodes.plan();
  plan.order(nodes.edges);
  RunState state(plan);
  for (int iteration = 0; iteration < 40; ++iteration) {
    run_sequential(plan, state, {});
    const auto* held = static_cast<const char*>(nodes.host.tensor().raw());
    ASSERT_EQ(std::count(held, held + kBytes, 1), kBytes);
  }
}

TEST(DeviceMemoryDeathTest, SharingWithoutItsEdgeIsFound) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  if (!open_simulated(0)) GTEST_SKIP() << "the simulated device was not built";
  for (const int seed : {0, 1, 2}) {
    EXPECT_EXIT(
        {
          open_simulated(seed);
          ThreeNodes nodes;
          Plan plan = nodes.plan();
          RunState state(plan);
          try {
            run_sequential(plan, state, {});
          } catch (const Error& e) {
            std::fprintf(stderr, "%s\n", e.what());
            std::_Exit(3);
          }
          std::_Exit(0);
        },
        testing::ExitedWithCode(3), "race");
  }
}

// Calls the library on the first block before it is filled. It holds what the plug-in has planned for the call.
NodeSpec multiplies(Value* block) {
  NodeSpec spec;
  spec.queue_index = queue_index_of(0, QueueKind::kCompute);
  spec.outs = {block};
  spec.writes = {0};
  auto call = std::make_shared<LibraryCall>("gemm");
  spec.kernel = Kernel([call](KernelContext& c) {
    device::GemmDesc desc{};
    desc.dtype = static_cast<int32_t>(DType::kFloat32);
    desc.m = desc.n = desc.k = desc.row_a = desc.row_b = desc.row_out = desc.batch = 1;
    Tensor& t = c[Out{0, 1}];
    call->run(DeviceContext::of(c), desc, {read_by(t), read_by(t), written_by(t)});
  });
  return spec;
}

TEST(DeviceMemoryDeathTest, PlansWithCallsOfALibraryEndOnDevicesThatAreLost) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  if (!open_simulated(0)) GTEST_SKIP() << "the simulated device was not built";
  const auto loses_devices = [] {
    open_simulated(0);
    ThreeNodes nodes;
    try {
      std::vector<NodeSpec> specs = nodes.specs();
      specs.insert(specs.begin(), multiplies(&nodes.first));
      Plan plan(std::move(specs));
      RunState state(plan);
      run_sequential(plan, state, {});
    } catch (const Error& e) {
      std::fprintf(stderr, "%s\n", e.what());
      std::_Exit(3);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(loses_devices(), testing::ExitedWithCode(3), "race");
}

// Ends the process: 0 when the plan ran; else 10 and the node that is said to have failed, 9 for none.
[[noreturn]] void run_alone(Plan plan, bool waits) {
  set_flag("FLAGS_benchmark", waits);
  RunState state(plan);
  try {
    run_sequential(plan, state, {});
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    std::_Exit(10 + state.failed_node());
  }
  std::_Exit(0);
}

TEST(DeviceMemoryDeathTest, WithFlagsBenchmarkEachNodeIsWaitedForAndNamed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  if (!open_simulated(0)) GTEST_SKIP() << "the simulated device was not built";
  const auto without_edges = [](bool waits) {
    open_simulated(0);
    ThreeNodes nodes;
    run_alone(nodes.plan(), waits);
  };
  EXPECT_EXIT(without_edges(false), testing::ExitedWithCode(9), "FLAGS_benchmark=1");
  EXPECT_EXIT(without_edges(true), testing::ExitedWithCode(0), "") << "a run that waits for each node needs no edges";
  // The first node of three writes past its block.
  const auto too_far = [](bool waits) {
    open_simulated(0);
    ThreeNodes nodes;
    Plan plan = nodes.plan();
    Tensor& first = nodes.first.as<Tensor>();
    first.view(first.mutable_raw(), Shape{int64_t{1} << 40}, first.kind(), nullptr);
    run_alone(std::move(plan), waits);
  };
  EXPECT_EXIT(too_far(true), testing::ExitedWithCode(10), "access of 1099511627776 bytes");
}

TEST(DeviceMemory, ShapesAreInferredWithoutMemoryAndBlocksAreKept) {
  NEEDS_DEVICES(0);
  device::Pool& pool = device::Devices::get().pool(0);
  const int64_t before = pool.used();
  std::vector<Value> values(3);
  std::vector<Temporary> all;
  for (int i = 0; i < 3; ++i) all.push_back({&values[static_cast<size_t>(i)], i, i + 1, {i, i + 1}, Place::cuda(0)});
  MemoryPlan memory;
  const auto shape = [&](int64_t elems) {
    const MemoryPlan::Shaping without_memory(all);
    for (size_t i = 0; i < 2; ++i) values[i].as<Tensor>().resize(Shape{elems}, {DType::kUInt8, Place::cuda(0)});
    const bool outgrown = memory.outgrown(all);
    if (outgrown) {
      memory.place(all, false);
    } else {
      memory.take_blocks(all);
    }
    return outgrown;
  };
  EXPECT_TRUE(shape(3 << 20));
  EXPECT_FALSE(values[2].initialized()) << "no shape function gave it a shape";
  EXPECT_EQ(pool.used() - before, 6 << 20);
  const void* const block = values[0].tensor().raw();
  EXPECT_TRUE(memory.holds(block));
  EXPECT_FALSE(shape(1 << 20)) << "smaller ones fit";
  EXPECT_EQ(values[0].tensor().raw(), block);
  EXPECT_EQ(values[0].tensor().shape(), Shape({1 << 20}));
  EXPECT_TRUE(shape(4 << 20));
  EXPECT_EQ(pool.used() - before, 10 << 20) << "the old arena has gone, the new one leaves room for a quarter more";
  memory.drop();
  for (Value& v : values) v.as<Tensor>().release();
  EXPECT_EQ(pool.used(), before);
}

// A block is given out again while the queue of its last user still has work; another queue writes it then.
// While queues are busy there is other memory; a block that was filled late is never given out before that.
TEST(DeviceMemory, ABlockIsGivenOutAgainAfterWhatWasPutIntoQueues) {
  NEEDS_DEVICES(0);
  device::Devices& devices = device::Devices::get();
  device::Pool& pool = devices.pool(0);
  constexpr size_t kSize = size_t{26} << 20;  // no other block's
  const void* first = nullptr;
  for (int iteration = 0; iteration < 4; ++iteration) {
    const std::shared_ptr<void> block = pool.allocate(kSize);
    EXPECT_TRUE(!first || block.get() == first) << "kept for use again";
    first = block.get();
    const auto kind = iteration % 2 ? QueueKind::kUp : QueueKind::kCompute;
    devices.check(devices.api().fill(devices.queue(0, kind), block.get(), iteration, kSize), "filling");
    EXPECT_NO_THROW(devices.wait(0));
  }
  // No wait: blocks of consecutive iterations may differ, and a block that is filled twice is filled in order.
  std::set<const void*> seen;
  for (int iteration = 0; iteration < 8; ++iteration) {
    const std::shared_ptr<void> block = pool.allocate(kSize);
    seen.insert(block.get());
    const auto kind = iteration % 2 ? QueueKind::kUp : QueueKind::kCompute;
    devices.check(devices.api().fill(devices.queue(0, kind), block.get(), iteration, kSize), "filling");
  }
  EXPECT_NO_THROW(devices.wait(0));
  const int64_t kept = pool.kept();
  EXPECT_TRUE(seen.count(pool.allocate(kSize).get())) << "what rested is there again";
  EXPECT_EQ(pool.kept(), kept) << "and nothing was added";
}

}  // namespace
}  // namespace anabranch
