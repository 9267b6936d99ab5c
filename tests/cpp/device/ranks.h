// One rank of a communicator on each simulated device, as tests of collectives use them.
#pragma once
#include "harness.h"

namespace anabranch::device {

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

inline float sum_of(int ranks, size_t i) {
  return folded(ranks, i, [](float a, float b) { return a + b; });
}

}  // namespace anabranch::device
