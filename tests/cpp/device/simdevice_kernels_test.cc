// Launches on the simulated device: arguments, workspaces, and what kernels report.

#include <cstring>

#include "harness.h"

namespace anabranch::device {
namespace {

TEST(SimdeviceKernels, KernelsUseTheirWorkspace) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  float *x = sim.floats(4), *y = sim.floats(4), *between = sim.floats(4);
  AB_WELL(scale(q, nullptr, x, 4, 1, 3));
  MapArgs args{{x, 16}, {y, 16}, 4, {}};
  const ab_kernel square = kernel("test/square/f32");
  size_t room = 0;
  AB_WELL(api.kernel_room(square, &args, sizeof args, &room));
  EXPECT_EQ(room, 16u);
  AB_FAILS(api.launch(q, square, &args, sizeof args, between, 12), AB_INVALID_ARGUMENT,
           "kernel test/square/f32 needs 16 bytes of workspace, got 12");
  AB_WELL(api.launch(q, square, &args, sizeof args, between, 16));
  memset(&args, 0, sizeof args);  // args were copied
  AB_WELL(sim.finish(q));
  EXPECT_EQ(sim.read(y, 4), std::vector<float>(4, 9.0f));
}

TEST(SimdeviceKernels, ReportsOfKernelsAreTheSmallestAndNeedNoOrder) {
  for (const Flags& flags : all_orders()) {
    Sim sim(flags);
    ab_queue *a = sim.queue("a"), *b = sim.queue("b");
    float *x = sim.floats(6), *y = sim.floats(3), *z = sim.floats(3);
    void* word = nullptr;
    AB_WELL(api.allocate(0, 8, &word));
    AB_WELL(api.fill(a, word, 0xff, 8));
    AB_WELL(scale(a, nullptr, x, 6, 1, -1));
    AB_WELL(api.queue_wait(b, sim.recorded(a)));
    const auto sums = [&](ab_queue* q, float* to, uint32_t node) {
      RowArgs args{};
      args.x[0] = {x, 24};
      args.y[0] = {to, 12};
      args.fault = {{word, 8}, node, 0};
      args.rows = 3;
      args.width = 2;
      return api.launch(q, kernel("test/row_sum/f32"), &args, sizeof args, nullptr, 0);
    };
    AB_WELL(sums(a, y, 8));
    AB_WELL(sums(b, z, 7));
    AB_WELL(sim.finish(a));
    AB_WELL(sim.finish(b));
    const std::vector<float> held = sim.read(static_cast<float*>(word), 2);
    uint64_t bits = 0;
    memcpy(&bits, held.data(), 8);
    const Fault fault = read_fault(bits);
    EXPECT_EQ(fault.node, 7u);
    EXPECT_EQ(fault.code, 3u);
    EXPECT_EQ(fault.detail, 0);
  }
}

}  // namespace
}  // namespace anabranch::device
