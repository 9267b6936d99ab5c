// Errors, and how work goes on, when ranks of other processes give up, or call different collectives.
#include "processes.h"

namespace anabranch::device {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(SimdeviceProcessFaults, ARankThatGivesUpIsSeenInOtherProcesses) {
  in_processes(2, [](int process, Page& page) {
    Members m(page, 2 * process, 2, 4);
    AB_WELL(m.run(AB_ALL_REDUCE_SUM, 1));
    AB_WELL(m.finish());
    if (process == 1) {
      page.meet(0, 2);
      page.times[0] = now_ms();
      m.leave(m.comms, 1);
    } else {
      AB_WELL(m.run(AB_ALL_REDUCE_SUM, 1));
      EXPECT_EQ(m.finish(1, 10), AB_TIMED_OUT);
      page.meet(0, 2);
      while (!page.times[0]) std::this_thread::yield();
      const Told told = told_by(m.comms[1], page.times[0]);
      EXPECT_EQ(told.rank, 2);
      EXPECT_LE(told.after_ms, kSoon);
      EXPECT_THAT(last_error(), HasSubstr("rank 2 has aborted communicator simulated 1"));
      AB_FAILS(m.finish(0, 10), AB_TIMED_OUT, "waits for ranks 2 3 of communicator simulated 1");
    }
    page.meet(1, 2);
    if (process == 0) m.leave(m.comms, 1);
    AB_WELL(m.finish(0));
    AB_WELL(m.finish(1));
  });
}

// A queue that waited in vain has undefined values, and the work after the wait runs.
TEST(SimdeviceProcessFaults, GivingUpWakesAThreadThatWaits) {
  in_processes(2, [](int process, Page& page) {
    Members m(page, process, 1, 2);
    if (process == 1) return page.meet(0, 2);
    AB_WELL(m.run(AB_ALL_REDUCE_SUM, 1));
    std::thread waits([&] { EXPECT_EQ(m.finish(0, 60000), AB_OK) << last_error(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto begun = now_ms();
    m.leave(m.comms, 1);
    waits.join();
    EXPECT_LT(now_ms() - begun, 10000);
    page.meet(0, 2);
  });
}

TEST(SimdeviceProcessFaults, ADisagreementIsReportedInAllProcesses) {
  struct Case {
    ab_collective what;
    size_t n;
    int dtype, root;
    const char* text;
  };
  for (const Case& c : {Case{AB_ALL_REDUCE_SUM, 4, AB_FLOAT32, 0, "all_reduce_sum of 4 float32"},
                        Case{AB_BROADCAST, 3, AB_FLOAT32, 1, "broadcast of 3 float32, root 1"},
                        Case{AB_ALL_REDUCE_SUM, 3, AB_INT32, 0, "all_reduce_sum of 3 int32"}}) {
    in_processes(3, [&](int process, Page& page) {
      Members m(page, process, 1, 3);
      EXPECT_EQ(m.sum_of(1), 3);
      AB_WELL(process == 2 ? m.run(c.what, c.n, c.dtype, c.root) : m.run(AB_ALL_REDUCE_SUM, 3));
      page.meet(1, 3);
      EXPECT_EQ(m.finish(0, 300), AB_TIMED_OUT);
      EXPECT_THAT(last_error(), HasSubstr("disagree on collective 1: "));
      int failed = 9;
      AB_FAILS(api.comm_check(m.comms[0], &failed), AB_UNAVAILABLE, "ranks of communicator simulated 1 of process");
      EXPECT_THAT(last_error(), AllOf(HasSubstr("runs all_reduce_sum of 3 float32"), HasSubstr(c.text)));
      EXPECT_EQ(failed, 2);
      page.meet(0, 3);
      give_up_and_work_on(m, page, process, 3);
    });
  }
}

// Ranks 0 and 1 live in one process, whose call returns the error; the other one is notified, too.
TEST(SimdeviceProcessFaults, ADisagreementWithinAProcessIsReportedElsewhere) {
  in_processes(2, [](int process, Page& page) {
    Members m(page, 2 * process, 2 - process, 3);
    if (process == 0) {
      AB_WELL(api.comm_group(1));
      AB_WELL(api.comm_run(m.comms[0], m.queues[0], AB_ALL_REDUCE_SUM, m.send[0], m.recv[0], 1, AB_FLOAT32, 0));
      AB_FAILS(api.comm_run(m.comms[1], m.queues[1], AB_ALL_REDUCE_MAX, m.send[1], m.recv[1], 1, AB_FLOAT32, 0),
               AB_INVALID_ARGUMENT, "disagree on collective 0: rank 0 runs all_reduce_sum");
      AB_WELL(api.comm_group(0));
      AB_WELL(m.finish()) << "rank 0 does not wait for ever";
    } else {
      const Told told = told_by(m.comms[0], now_ms());
      EXPECT_EQ(told.rank, 1);
      EXPECT_THAT(last_error(), HasSubstr("rank 1 runs all_reduce_max of 1 float32"));
    }
    page.meet(0, 2);
  });
}

TEST(SimdeviceProcessFaults, NoProcessGivesMoreThanADeviceOfTheNamingOneHolds) {
  in_processes(2, [](int process, Page& page) {
    Members m(page, process, 1, 2, {{"simdevice_bytes", process == 0 ? "1048576" : "2097152"}});
    const size_t most = size_t{1048576} / sizeof(float);
    EXPECT_EQ(m.run(AB_ALL_REDUCE_SUM, most + 1), AB_INVALID_ARGUMENT);
    EXPECT_THAT(m.last, HasSubstr("gives up to 1048576 bytes, the memory of a device where it was named, got 1048580"));
    EXPECT_EQ(m.sum_of(1), 2);
  });
}

TEST(SimdeviceProcessFaults, RanksOfSeveralProcessesFitTogether) {
  in_processes(2, [](int process, Page& page) {
    Members m(page, process, 1, 3);
    page.meet(0, 2);
    if (process == 1) {
      ab_comm* c = nullptr;
      AB_FAILS(api.comm_new(0, page.id(0), 2, 3, &c), AB_INVALID_ARGUMENT, "are both on device 0");
      m.leave(m.comms, 0);
      AB_FAILS(api.comm_new(0, page.id(0), 0, 3, &c), AB_INVALID_ARGUMENT, "has a rank 0 already");
      AB_FAILS(api.comm_new(0, page.id(0), 2, 4, &c), AB_INVALID_ARGUMENT, "has 4 ranks, another one said 3");
      AB_WELL(api.comm_new(0, page.id(0), 2, 3, &c));
      AB_WELL(api.comm_free(c, 0));
    }
    page.meet(1, 2);
  });
}

}  // namespace
}  // namespace anabranch::device
