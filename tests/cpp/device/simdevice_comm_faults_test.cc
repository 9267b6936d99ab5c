// Errors when ranks call different collectives, do not come, or give up.

#include <thread>

#include "ranks.h"

namespace anabranch::device {
namespace {

using testing::HasSubstr;

TEST(SimdeviceCommFaults, ADisagreementNamesBothSides) {
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

TEST(SimdeviceCommFaults, DisagreeingRootsAreNamed) {
  Ranks r(2);
  AB_WELL(api.comm_group(1));
  AB_WELL(r.run(0, AB_BROADCAST, 3, AB_FLOAT32, 0));
  AB_FAILS(r.run(1, AB_BROADCAST, 3, AB_FLOAT32, 1), AB_INVALID_ARGUMENT, "rank 1 runs broadcast of 3 float32, root 1");
  AB_WELL(api.comm_group(0));
}

TEST(SimdeviceCommFaults, ARankThatDoesNotComeIsNamedAtTheDeadline) {
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

TEST(SimdeviceCommFaults, AWaitWithoutDeadlineThatStandsStillIsAFault) {
  Ranks r(2);
  AB_WELL(r.run(0, AB_ALL_REDUCE_SUM, 3));
  AB_FAILS(r.sim.finish(r.queues[0], 0), AB_FAULT, "deadlock: queue comm of device 0 waits for rank 1");
}

TEST(SimdeviceCommFaults, TwoCommunicatorsInDifferentOrdersAreAFault) {
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

TEST(SimdeviceCommFaults, OneThreadPutsItsRanksIntoOneGroup) {
  Ranks r(2);
  AB_WELL(r.run(0, AB_ALL_REDUCE_SUM, 3));
  AB_FAILS(r.run(1, AB_ALL_REDUCE_SUM, 3), AB_INVALID_ARGUMENT, "belong between comm_group(1) and comm_group(0)");
  AB_FAILS(api.comm_group(0), AB_INVALID_ARGUMENT, "comm_group(0) without comm_group(1)");
  AB_WELL(api.comm_group(1));
  ab_event* e = r.sim.recorded(r.queues[1], 1);
  AB_FAILS(api.event_wait(e, AB_FOREVER), AB_INVALID_ARGUMENT, "between comm_group(1) and comm_group(0)");
  AB_WELL(api.comm_group(0));
}

TEST(SimdeviceCommFaults, ARankThatGivesUpIsNamed) {
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

TEST(SimdeviceCommFaults, RanksOfACommunicatorFitTogether) {
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

}  // namespace
}  // namespace anabranch::device
