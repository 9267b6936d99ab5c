// Collectives of simulated devices: what they compute, and what they order.

#include <thread>

#include "ranks.h"

namespace anabranch::device {
namespace {

TEST(SimdeviceComms, CollectivesComputeTheirFunctions) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    Ranks r(ranks, seeded(static_cast<uint64_t>(ranks)));
    const int root = ranks - 1;
    r.run_all(AB_ALL_REDUCE_SUM, 3);
    for (int k = 0; k < ranks; ++k) {
      EXPECT_EQ(r.held(k, 3)[1], sum_of(ranks, 1));
    }
    r.run_all(AB_ALL_REDUCE_MAX, 3);
    for (int k = 0; k < ranks; ++k) {
      EXPECT_EQ(r.held(k, 3)[2], folded(ranks, 2, [](float a, float b) { return a > b ? a : b; }));
    }
    r.run_all(AB_ALL_REDUCE_MIN, 3);
    for (int k = 0; k < ranks; ++k) {
      EXPECT_EQ(r.held(k, 3)[2], folded(ranks, 2, [](float a, float b) { return a < b ? a : b; }));
    }
    r.run_all(AB_ALL_REDUCE_PROD, 3);
    for (int k = 0; k < ranks; ++k) {
      EXPECT_EQ(r.held(k, 3)[0], folded(ranks, 0, [](float a, float b) { return a * b; }));
    }
    r.run_all(AB_BROADCAST, 3, root);
    for (int k = 0; k < ranks; ++k) {
      EXPECT_EQ(r.held(k, 3)[1], Ranks::value(root, 1));
    }
    r.run_all(AB_REDUCE_SUM, 2, root);
    EXPECT_EQ(r.held(root, 2)[1], sum_of(ranks, 1)) << "the bits of the sum to all";
    if (ranks > 1) {
      EXPECT_EQ(r.held(0, 2)[1], Ranks::value(root, 1)) << "written at the root alone";
    }
    r.run_all(AB_ALL_GATHER, 3);
    const std::vector<float> all = r.held(0, static_cast<size_t>(ranks) * 3);
    for (int k = 0; k < ranks; ++k) {
      EXPECT_EQ(all[static_cast<size_t>(k) * 3 + 2], Ranks::value(k, 2));
    }
    r.run_all(AB_REDUCE_SCATTER, 3);
    for (int k = 0; k < ranks; ++k) {
      EXPECT_EQ(r.held(k, 3)[1], sum_of(ranks, static_cast<size_t>(k) * 3 + 1));
    }
  }
}

TEST(SimdeviceComms, AnyOrderGivesTheSameBits) {
  std::vector<float> first;
  for (const Flags& flags : all_orders()) {
    Ranks r(4, flags);
    for (int iteration = 0; iteration < 3; ++iteration) {
      r.run_all(AB_ALL_REDUCE_SUM, 5);
      for (int k = 0; k < 4; ++k) {
        AB_WELL(scale(r.queues[static_cast<size_t>(k)], r.recv[static_cast<size_t>(k)], r.send[static_cast<size_t>(k)],
                      5, 0.1, k));
      }
    }
    const std::vector<float> held = r.held(2, 5);
    if (first.empty()) first = held;
    EXPECT_EQ(held, first);
  }
}

TEST(SimdeviceComms, HalvesAreAddedUpInFloat) {
  Ranks r(3);
  std::vector<void*> operands;
  for (int k = 0; k < 3; ++k) {
    void* p = nullptr;
    AB_WELL(api.allocate(k, 2, &p));
    MapArgs args{{}, {p, 2}, 1, {1, k == 0 ? 2048.0 : 1.0}};  // 2048 + 1 is 2048 in halves, + 2 is 2050
    AB_WELL(api.launch(r.queues[static_cast<size_t>(k)], kernel("test/scale/f16"), &args, sizeof args, nullptr, 0));
    operands.push_back(p);
  }
  AB_WELL(api.comm_group(1));
  for (size_t k = 0; k < 3; ++k) {
    AB_WELL(api.comm_run(r.comms[k], r.queues[k], AB_ALL_REDUCE_SUM, operands[k], operands[k], 1, AB_FLOAT16, 0));
  }
  AB_WELL(api.comm_group(0));
  void* down = nullptr;
  AB_WELL(api.allocate_pinned(2, &down));
  AB_WELL(api.copy(r.queues[1], down, AB_HOST_MEMORY, operands[1], 1, 2));
  AB_WELL(r.sim.finish(r.queues[1], 1));
  EXPECT_EQ(static_cast<float>(*static_cast<half*>(down)), 2050.0f);
}

// Work before a collective is done when another rank has its sum; the rank's part of the collective may not be.
TEST(SimdeviceComms, ACollectiveOrdersWhatRanksDidBeforeIt) {
  for (const Flags& flags : all_orders()) {
    for (const int waited_for : {0, 1, -1}) {
      for (const bool its_sum : {false, true}) {
        Ranks r(2, flags);
        ab_queue* compute = r.sim.queue("compute", 1);
        float* earlier = r.sim.floats(3, 1);
        AB_WELL(scale(r.queues[1], nullptr, earlier, 3, 1, 7));
        r.run_all(AB_ALL_REDUCE_SUM, 3);
        if (waited_for >= 0) {
          AB_WELL(api.queue_wait(compute, r.sim.recorded(r.queues[static_cast<size_t>(waited_for)], waited_for)));
        }
        AB_WELL(scale(compute, its_sum ? r.recv[1] : earlier, r.send[1] + 3, 3, 1, 0));
        int status = r.sim.finish(compute, 1);
        if (!status) status = r.sim.finish(r.queues[1], 1);
        const bool ordered = waited_for == 1 || (waited_for == 0 && !its_sum);
        EXPECT_EQ(status, ordered ? AB_OK : AB_FAULT) << waited_for << its_sum << last_error();
      }
    }
  }
}

// The root of a broadcast does not wait, and the other ranks of a sum for the root are given nothing.
TEST(SimdeviceComms, ARankKnowsOfThoseThatGaveItSomething) {
  for (const Flags& flags : all_orders()) {
    for (const ab_collective what : {AB_BROADCAST, AB_REDUCE_SUM}) {
      for (const int root : {0, 1}) {
        Ranks r(2, flags);
        ab_queue* compute = r.sim.queue("compute", 1);
        float* earlier = r.sim.floats(3, 1);
        AB_WELL(scale(r.queues[1], nullptr, earlier, 3, 1, 7));
        r.run_all(what, 3, root);
        AB_WELL(api.queue_wait(compute, r.sim.recorded(r.queues[0], 0)));
        AB_WELL(scale(compute, earlier, r.send[1] + 3, 3, 1, 0));
        int status = r.sim.finish(compute, 1);
        if (!status) status = r.sim.finish(r.queues[1], 1);
        const bool given = what == AB_BROADCAST ? root == 1 : root == 0;
        EXPECT_EQ(status, given ? AB_OK : AB_FAULT) << what << root << last_error();
      }
    }
  }
}

TEST(SimdeviceComms, ReplayedCollectivesAreNewOnes) {
  for (const Flags& flags : all_orders()) {
    Ranks r(2, flags);
    std::vector<ab_graph*> graphs(2);
    for (size_t k = 0; k < 2; ++k) {
      AB_WELL(api.capture_begin(r.queues[k]));
      AB_WELL(api.comm_run(r.comms[k], r.queues[k], AB_ALL_REDUCE_SUM, r.send[k], r.send[k], 1, AB_FLOAT32, 0));
      AB_WELL(api.capture_end(r.queues[k], &graphs[k]));
    }
    for (int iteration = 0; iteration < 3; ++iteration) {
      for (size_t k = 0; k < 2; ++k) {
        AB_WELL(api.graph_launch(graphs[k], r.queues[k]));
      }
    }
    for (int k = 0; k < 2; ++k) {
      AB_WELL(r.sim.finish(r.queues[static_cast<size_t>(k)], k));
    }
    EXPECT_EQ(r.sim.read(r.send[1], 1, 1)[0], 4 * sum_of(2, 0));
  }
}

TEST(SimdeviceComms, EachRankMayHaveItsThread) {
  Flags flags = seeded(7);
  flags["simdevice_patience_ms"] = "60000";
  Ranks r(4, flags);
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&, k] {
      const auto at = static_cast<size_t>(k);
      for (int iteration = 0; iteration < 5; ++iteration) {
        EXPECT_EQ(r.run(k, AB_ALL_REDUCE_SUM, 3), AB_OK) << last_error();
        EXPECT_EQ(scale(r.queues[at], r.recv[at], r.send[at], 3, 0.25, 0), AB_OK);
        if (iteration % 2) {
          EXPECT_EQ(r.sim.finish(r.queues[at], k), AB_OK) << last_error();
        }
      }
      EXPECT_EQ(r.sim.finish(r.queues[at], k), AB_OK) << last_error();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(r.sim.read(r.recv[0], 3, 0), r.sim.read(r.recv[3], 3, 3));
}

}  // namespace
}  // namespace anabranch::device
