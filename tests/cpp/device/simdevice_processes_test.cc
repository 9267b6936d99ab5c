// Ranks in several processes: which ranks a collective waits for, the order of rounds, and that no memory is left.
#include "processes.h"

namespace anabranch::device {
namespace {

// No queue waits while another one of its process has something to do.
TEST(SimdeviceProcesses, OtherQueuesGoOnWhileOneWaits) {
  in_processes(2, [](int process, Page& page) {
    Members m(page, process, 1, 2);
    if (process == 1) page.meet(0, 2);  // the other one has ended its work by then
    EXPECT_EQ(m.run(AB_ALL_REDUCE_SUM, 1), AB_OK) << m.last;
    if (process == 0) {
      ab_queue* other = m.sim.queue("other");
      float* x = m.sim.floats(1);
      AB_WELL(scale(other, nullptr, x, 1, 1, 5));
      AB_WELL(m.sim.finish(other));
      EXPECT_EQ(m.sim.read(x, 1)[0], 5);
      EXPECT_EQ(m.finish(0, 10), AB_TIMED_OUT) << "the collective has not run";
      page.meet(0, 2);
    }
    AB_WELL(m.finish());
  });
}

TEST(SimdeviceProcesses, AWaitForALateProcessIsNotAFault) {
  in_processes(2, [](int process, Page& page) {
    Members m(page, process, 1, 2);  // whose patience is 50 ms
    for (int iteration = 0; iteration < 2; ++iteration) {
      const auto begun = now_ms();
      page.meet(iteration, 2);  // a process that a busy machine keeps waiting has begun before the other one sleeps
      if (process == iteration) std::this_thread::sleep_for(std::chrono::milliseconds(300));
      EXPECT_EQ(m.sum_of(3), 6);
      EXPECT_GT(now_ms() - begun, 250);
    }
  });
}

TEST(SimdeviceProcesses, AProcessMayJoinLate) {
  in_processes(2, [](int process, Page& page) {
    if (process == 1) {
      page.id(0);
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    Members m(page, process, 1, 2);
    EXPECT_EQ(m.sum_of(3), 6);
  });
}

TEST(SimdeviceProcesses, ManyRoundsOfTwoCommunicators) {
  constexpr int kRounds = 10000;
  in_processes(2, [](int process, Page& page) {
    Members m(page, process, 1, 2, seeded(static_cast<uint64_t>(process)));
    if (process == 0) page.name(1);
    std::vector<ab_comm*> second = m.join(page.id(1), process, 2);
    ab_queue* side = m.sim.queue("second");
    float* x = m.sim.floats(1);
    float* y = m.sim.floats(1);
    const float one = 1;
    m.give(0, &one, sizeof one);
    AB_WELL(scale(side, nullptr, x, 1, 1, 0));
    AB_WELL(m.sim.finish(side));
    for (int round = 0; round < kRounds; ++round) {
      AB_WELL(m.run(AB_ALL_REDUCE_SUM, 1));
      AB_WELL(scale(m.queues[0], static_cast<float*>(m.recv[0]), static_cast<float*>(m.send[0]), 1, 0.5, 0.25));
      AB_WELL(api.comm_run(second[0], side, AB_ALL_REDUCE_MAX, x, y, 1, AB_FLOAT32, 0));
      AB_WELL(scale(side, y, x, 1, 1, process == round % 2 ? 1 : 0.5));
      if (round % 10 == 9) {
        AB_WELL(m.finish());
        AB_WELL(m.sim.finish(side));
      }
    }
    float held = 0;
    memcpy(&held, m.held(0, sizeof held), sizeof held);
    EXPECT_EQ(held, 2 + 0.5f * (kRounds - 1));
    EXPECT_EQ(m.sim.read(y, 1)[0], kRounds - 1);
    m.leave(second, 0);
  });
}

// The work that this process submitted around its part is ordered as in any other collective.
TEST(SimdeviceProcesses, AnAccessThatNothingOrdersWithItsPartIsFound) {
  for (const bool ordered : {true, false}) {
    in_processes(2, [&](int process, Page& page) {
      Members m(page, process, 1, 2, seeded(static_cast<uint64_t>(process)));
      ab_queue* other = m.sim.queue("other");
      AB_WELL(m.run(AB_ALL_REDUCE_SUM, 1));
      if (ordered) {
        AB_WELL(api.queue_wait(other, m.sim.recorded(m.queues[0])));
      }
      AB_WELL(scale(other, nullptr, static_cast<float*>(m.send[0]), 1, 1, 5));
      int status = m.sim.finish(other);
      if (!status) status = m.finish(0, 10000);
      EXPECT_EQ(status, ordered ? AB_OK : AB_FAULT) << last_error();
      EXPECT_TRUE(ordered || last_error().starts_with("race: ")) << last_error();
      page.meet(0, 2);
    });
  }
}

// As devices do: a process whose threads wait for something else does not keep the others waiting.
TEST(SimdeviceProcesses, NoProcessHasToWaitForTheDevice) {
  in_processes(3, [](int process, Page& page) {
    Members m(page, process, 1, 3);
    for (int iteration = 0; iteration < 3; ++iteration) AB_WELL(m.run(AB_ALL_REDUCE_SUM, 1));
    if (process == 0) {
      AB_WELL(m.finish(0, 20000));
    }
    page.meet(0, 3);
    AB_WELL(m.finish());
  });
}

TEST(SimdeviceProcesses, CapturedCollectivesMeetThoseOfOtherProcesses) {
  in_processes(2, [](int process, Page& page) {
    Members m(page, process, 1, 2);
    const float x = 1;
    m.give(0, &x, sizeof x);
    ab_graph* graph = nullptr;
    AB_WELL(api.capture_begin(m.queues[0]));
    AB_WELL(api.comm_run(m.comms[0], m.queues[0], AB_ALL_REDUCE_SUM, m.send[0], m.send[0], 1, AB_FLOAT32, 0));
    AB_WELL(api.capture_end(m.queues[0], &graph));
    for (int iteration = 0; iteration < 3; ++iteration) AB_WELL(api.graph_launch(graph, m.queues[0]));
    AB_WELL(m.finish());
    EXPECT_EQ(m.sim.read(static_cast<float*>(m.send[0]), 1)[0], 8);
    AB_WELL(api.graph_free(graph));
  });
}

// A rank that has its sum may leave at once, and end: the others still find its contribution.
TEST(SimdeviceProcesses, LeavingProcessesHaveGivenTheirParts) {
  for (int iteration = 0; iteration < 10; ++iteration) {
    in_processes(3, [](int process, Page& page) {
      Members m(page, process, 1, 3);
      const float x = 2;
      m.give(0, &x, sizeof x);
      if (process != 2) page.meet(0, 3);
      AB_WELL(m.run(AB_ALL_REDUCE_SUM, 1));
      if (process == 2) {
        EXPECT_EQ(m.finish(0, 30), AB_TIMED_OUT) << "the others have not come";
        page.meet(0, 3);
        page.meet(1, 2, false);
      }
      AB_WELL(m.finish());
      if (process != 2) {
        EXPECT_EQ(api.comm_check(m.comms[0], nullptr), AB_OK) << last_error();
        m.leave(m.comms, 0);
        ++page.steps[1];
      } else {
        EXPECT_EQ(api.comm_check(m.comms[0], nullptr), AB_OK) << last_error();
        EXPECT_EQ(m.run(AB_ALL_REDUCE_SUM, 1), AB_UNAVAILABLE);
        EXPECT_THAT(m.last, testing::HasSubstr("rank 0 has left communicator simulated 1"));
      }
      EXPECT_EQ(*reinterpret_cast<const float*>(m.held(0, sizeof(float))), 6);
    });
  }
}

}  // namespace
}  // namespace anabranch::device
