// Collectives of simulated devices, and what is said when ranks do not mean the same.
#include <gmock/gmock.h>

#include <memory>
#include <thread>

#include "harness.h"

namespace anabranch::device {
namespace {

using testing::HasSubstr;

// One rank a device, each with a queue and buffers of ranks * 3 floats.
struct Ranks {
  explicit Ranks(int count, Flags flags = {}) : sim(std::move(flags), count) {
    char id[128];
    EXPECT_EQ(api.comm_id(id), AB_OK);
    EXPECT_EQ(api.comm_group(1), AB_OK);
    const size_t room = static_cast<size_t>(count) * 3;
    for (int rank = 0; rank < count; ++rank) {
      queues.push_back(sim.queue("comm", rank));
      send.push_back(sim.floats(room, rank));
      recv.push_back(sim.floats(room, rank));
      comms.emplace_back();
      EXPECT_EQ(api.comm_new(rank, id, rank, count, &comms.back()), AB_OK) << last_error();
      for (size_t i = 0; i < room; ++i) {  // sums of these depend on their order
        EXPECT_EQ(scale(queues.back(), nullptr, send.back() + i, 1, 1, value(rank, i)), AB_OK);
      }
    }
    EXPECT_EQ(api.comm_group(0), AB_OK);
  }
  static float value(int rank, size_t i) {
    return (static_cast<float>(i) + 0.1f) * (rank % 2 ? 1e-3f : 33.3f) + static_cast<float>(rank);
  }
  int count() const { return static_cast<int>(queues.size()); }

  int run(int rank, ab_collective what, size_t n, int dtype = AB_FLOAT32, int root = 0) {
    const auto at = static_cast<size_t>(rank);
    return api.comm_run(comms[at], queues[at], what, send[at], recv[at], n, dtype, root);
  }
  void run_all(ab_collective what, size_t n, int root = 0) {
    AB_WELL(api.comm_group(1));
    for (int rank = 0; rank < count(); ++rank) {
      AB_WELL(run(rank, what, n, AB_FLOAT32, root));
    }
    AB_WELL(api.comm_group(0));
  }
  std::vector<float> held(int rank, size_t n) {
    const auto at = static_cast<size_t>(rank);
    EXPECT_EQ(sim.finish(queues[at], rank), AB_OK) << last_error();
    return sim.read(recv[at], n, rank);
  }

  Sim sim;
  std::vector<ab_queue*> queues;
  std::vector<ab_comm*> comms;
  std::vector<float*> send, recv;
};

// Element i of the fold over ranks in their order.
template <class Fn> float folded(int ranks, size_t i, Fn fn) {
  float all = Ranks::value(0, i);
  for (int rank = 1; rank < ranks; ++rank) all = fn(all, Ranks::value(rank, i));
  return all;
}

float sum_of(int ranks, size_t i) {
  return folded(ranks, i, [](float a, float b) { return a + b; });
}

TEST(SimdeviceComms, CollectivesGiveWhatTheirNamesSay) {
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
    for (int turn = 0; turn < 3; ++turn) {
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

TEST(SimdeviceComms, ADisagreementNamesBothSides) {
  struct Case {
    ab_collective what;
    size_t count;
    int dtype, root;
    const char* text;
  };
  for (const Case& c : {Case{AB_ALL_REDUCE_SUM, 4, AB_FLOAT32, 0, "all_reduce_sum of 4 float32"},
                        Case{AB_BROADCAST, 3, AB_FLOAT32, 0, "broadcast of 3 float32, root 0"},
                        Case{AB_ALL_REDUCE_SUM, 3, AB_INT32, 0, "all_reduce_sum of 3 int32"}}) {
    Ranks r(2);
    AB_WELL(api.comm_group(1));
    AB_WELL(r.run(0, AB_ALL_REDUCE_SUM, 3));
    AB_FAILS(r.run(1, c.what, c.count, c.dtype, c.root), AB_INVALID_ARGUMENT,
             "disagree on collective 0: rank 0 runs all_reduce_sum of 3 float32, rank 1 runs " + std::string(c.text));
    AB_WELL(api.comm_group(0));
    AB_WELL(r.sim.finish(r.queues[0], 0)) << "rank 0 does not wait for ever";
    int failed = 9;
    AB_FAILS(api.comm_check(r.comms[0], &failed), AB_UNAVAILABLE, "disagree on collective 0");
    EXPECT_EQ(failed, 1);
    AB_FAILS(r.run(0, AB_ALL_REDUCE_SUM, 3), AB_UNAVAILABLE, "disagree on collective 0");
  }
}

TEST(SimdeviceComms, DisagreeingRootsAreNamed) {
  Ranks r(2);
  AB_WELL(api.comm_group(1));
  AB_WELL(r.run(0, AB_BROADCAST, 3, AB_FLOAT32, 0));
  AB_FAILS(r.run(1, AB_BROADCAST, 3, AB_FLOAT32, 1), AB_INVALID_ARGUMENT, "rank 1 runs broadcast of 3 float32, root 1");
  AB_WELL(api.comm_group(0));
}

TEST(SimdeviceComms, ARankThatDoesNotComeIsNamedAtTheDeadline) {
  Ranks r(3);
  AB_WELL(api.comm_group(1));
  AB_WELL(r.run(0, AB_ALL_REDUCE_SUM, 3));
  AB_WELL(r.run(2, AB_ALL_REDUCE_SUM, 3));
  AB_WELL(api.comm_group(0));
  AB_FAILS(r.sim.finish(r.queues[0], 0, 20), AB_TIMED_OUT, "queue comm of device 0 waits for rank 1 of communicator");
  std::thread late([&] { EXPECT_EQ(r.run(1, AB_ALL_REDUCE_SUM, 3), AB_OK); });
  late.join();
  EXPECT_EQ(r.held(0, 3)[0], sum_of(3, 0)) << "it is in time for the next wait";
}

TEST(SimdeviceComms, AWaitWithoutDeadlineThatStandsStillIsAFault) {
  Ranks r(2);
  AB_WELL(r.run(0, AB_ALL_REDUCE_SUM, 3));
  AB_FAILS(r.sim.finish(r.queues[0], 0), AB_FAULT, "nothing can go on: queue comm of device 0 waits for rank 1");
}

TEST(SimdeviceComms, TwoCommunicatorsInDifferentOrdersAreAFault) {
  Ranks r(2);
  char id[128];
  AB_WELL(api.comm_id(id));
  ab_comm* second[2] = {};
  for (int k = 0; k < 2; ++k) {
    AB_WELL(api.comm_new(k, id, k, 2, &second[k]));
  }
  const auto run_second = [&](size_t k) {
    return api.comm_run(second[k], r.queues[k], AB_BROADCAST, r.send[k], r.recv[k], 1, AB_FLOAT32, 0);
  };
  AB_WELL(api.comm_group(1));
  AB_WELL(r.run(0, AB_ALL_REDUCE_SUM, 3));
  AB_WELL(run_second(0));
  AB_WELL(run_second(1));
  AB_WELL(r.run(1, AB_ALL_REDUCE_SUM, 3));
  AB_WELL(api.comm_group(0));
  AB_FAILS(r.sim.finish(r.queues[0], 0), AB_FAULT,
           "waits for the queues of the other ranks of communicator simulated 1");
}

TEST(SimdeviceComms, OneThreadPutsItsRanksIntoOneGroup) {
  Ranks r(2);
  AB_WELL(r.run(0, AB_ALL_REDUCE_SUM, 3));
  AB_FAILS(r.run(1, AB_ALL_REDUCE_SUM, 3), AB_INVALID_ARGUMENT, "belong between comm_group(1) and comm_group(0)");
  AB_FAILS(api.comm_group(0), AB_INVALID_ARGUMENT, "comm_group(0) without comm_group(1)");
  AB_WELL(api.comm_group(1));
  ab_event* e = r.sim.recorded(r.queues[1], 1);
  AB_FAILS(api.event_wait(e, AB_FOREVER), AB_INVALID_ARGUMENT, "between comm_group(1) and comm_group(0)");
  AB_WELL(api.comm_group(0));
}

TEST(SimdeviceComms, ARankThatGivesUpIsNamed) {
  Ranks r(2);
  AB_WELL(r.run(0, AB_ALL_REDUCE_SUM, 3));
  AB_FAILS(api.comm_free(r.comms[0], 0), AB_INVALID_ARGUMENT, "before its collectives have passed");
  AB_WELL(api.comm_free(r.comms[1], 1));
  AB_WELL(r.sim.finish(r.queues[0], 0));
  int failed = 9;
  AB_FAILS(api.comm_check(r.comms[0], &failed), AB_UNAVAILABLE, "rank 1 has aborted communicator");
  EXPECT_EQ(failed, 1);
  AB_WELL(api.comm_free(r.comms[0], 0));
}

TEST(SimdeviceComms, RanksOfACommunicatorFitTogether) {
  Sim sim({}, 2);
  char id[128], foreign[128] = "abc";
  AB_WELL(api.comm_id(id));
  ab_comm* c = nullptr;
  AB_FAILS(api.comm_new(0, foreign, 0, 2, &c), AB_UNSUPPORTED, "communicator \"abc\" was not named by comm_id()");
  AB_FAILS(api.comm_new(0, id, 2, 2, &c), AB_INVALID_ARGUMENT, "rank must be from 0 to 1, got 2");
  AB_FAILS(api.comm_new(0, id, 0, 9, &c), AB_INVALID_ARGUMENT, "ranks must be from 1 to 8, got 9");
  AB_WELL(api.comm_new(0, id, 0, 2, &c));
  AB_FAILS(api.comm_new(1, id, 0, 2, &c), AB_INVALID_ARGUMENT, "has a rank 0 already");
  AB_FAILS(api.comm_new(0, id, 1, 2, &c), AB_INVALID_ARGUMENT, "are both on device 0");
  AB_FAILS(api.comm_new(1, id, 1, 3, &c), AB_INVALID_ARGUMENT, "has 3 ranks, another one said 2");
}

TEST(SimdeviceComms, ACollectiveOrdersTheQueuesItJoins) {
  for (const Flags& flags : all_orders()) {
    for (const bool through_comm : {true, false}) {
      Ranks r(2, flags);
      ab_queue* compute = r.sim.queue("compute", 1);
      r.run_all(AB_ALL_REDUCE_SUM, 3);
      if (through_comm) {
        AB_WELL(api.queue_wait(compute, r.sim.recorded(r.queues[0], 0)));
      }
      AB_WELL(scale(compute, r.recv[1], r.send[1], 3, 1, 0));
      int status = r.sim.finish(compute, 1);
      if (!status) status = r.sim.finish(r.queues[1], 1);
      EXPECT_EQ(status, through_comm ? AB_OK : AB_FAULT) << last_error();
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
    for (int turn = 0; turn < 3; ++turn) {
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
      for (int turn = 0; turn < 5; ++turn) {
        EXPECT_EQ(r.run(k, AB_ALL_REDUCE_SUM, 3), AB_OK) << last_error();
        EXPECT_EQ(scale(r.queues[at], r.recv[at], r.send[at], 3, 0.25, 0), AB_OK);
        if (turn % 2) {
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
