// Errors when processes with ranks of a communicator die, and how work goes on.
#include "processes.h"

namespace anabranch::device {
namespace {

using testing::AllOf;
using testing::HasSubstr;

enum class Death { kBeforeTheFirst, kBetweenTwo, kAfterItsPart };

// Rank 1 of 3 dies. The others have begun a collective by then, except where it alone has begun one.
void expect_that_death_is_told(Death when) {
  const auto body = [&](int process, Page& page) {
    Members m(page, process, 1, 3);
    if (when == Death::kBetweenTwo) {
      EXPECT_EQ(m.sum_of(1), 3);
    }
    page.meet(0, 3);
    if (process == 1) {
      if (when == Death::kAfterItsPart) {
        AB_WELL(m.run(AB_ALL_REDUCE_SUM, 1));
        EXPECT_EQ(m.finish(0, 30), AB_TIMED_OUT);
      }
      page.meet(1, when == Death::kAfterItsPart ? 1 : 3);
      page.times[0] = now_ms();
      die();
    }
    if (when != Death::kAfterItsPart) {
      AB_WELL(m.run(AB_ALL_REDUCE_SUM, 1));
      EXPECT_EQ(m.finish(0, 10), AB_TIMED_OUT);
      page.meet(1, 3);
    }
    while (!page.times[0]) std::this_thread::yield();
    const Told told = told_by(m.comms[0], page.times[0]);
    EXPECT_EQ(told.status, AB_UNAVAILABLE);
    EXPECT_EQ(told.rank, 1);
    EXPECT_LE(told.after_ms, kSoon);
    EXPECT_THAT(last_error(),
                AllOf(HasSubstr("rank 1 of communicator simulated 1 of process"), HasSubstr("has ended (process ")));
    if (when != Death::kAfterItsPart) {
      AB_FAILS(m.finish(0, 20), AB_TIMED_OUT, "waits for rank 1 of communicator");
      EXPECT_THAT(last_error(), HasSubstr("has ended (process ")) << "under way stays under way";
    }
    page.meet(2, 2);
    give_up_and_work_on(m, page, process / 2, 2);
  };
  in_processes(3, body, {1});
}

TEST(SimdeviceProcessDeaths, BeforeTheFirstCollectiveIsReported) { expect_that_death_is_told(Death::kBeforeTheFirst); }
TEST(SimdeviceProcessDeaths, BetweenTwoCollectivesIsReported) { expect_that_death_is_told(Death::kBetweenTwo); }
TEST(SimdeviceProcessDeaths, AfterItsPartIsReported) { expect_that_death_is_told(Death::kAfterItsPart); }

// The ranks that would have come are unknown: the error names the number that it waits for.
TEST(SimdeviceProcessDeaths, BeforeJoiningShowsAtTheDeadline) {
  const auto body = [](int process, Page& page) {
    if (process == 1) die();
    Members m(page, process, 1, 2);
    AB_WELL(m.run(AB_ALL_REDUCE_SUM, 1));
    AB_FAILS(m.finish(0, 200), AB_TIMED_OUT, "waits for rank 1 of communicator simulated 1");
    EXPECT_EQ(api.comm_check(m.comms[0], nullptr), AB_OK);
    m.leave(m.comms, 1);
    AB_WELL(m.finish());
  };
  in_processes(2, body, {1});
}

TEST(SimdeviceProcessDeaths, WithoutTheNamingProcessNoneJoins) {
  const auto body = [](int process, Page& page) {
    if (process == 0) {
      const Sim sim({}, 1);
      page.name(0);
      page.meet(0, 2);
      page.times[0] = now_ms();
      die();
    }
    Members m(page, process, 1, 3);
    AB_WELL(m.run(AB_ALL_REDUCE_SUM, 1));
    EXPECT_EQ(m.finish(0, 10), AB_TIMED_OUT);
    page.meet(0, 2);
    while (!page.times[0]) std::this_thread::yield();
    const Told told = told_by(m.comms[0], page.times[0]);
    EXPECT_EQ(told.rank, -1) << "ranks 0 and 2 are missing";
    EXPECT_LE(told.after_ms, kSoon);
    EXPECT_THAT(last_error(), AllOf(HasSubstr(", which has named communicator simulated 1 of process "),
                                    HasSubstr("has ended before ranks 0 2 came")));
    m.leave(m.comms, 1);
    AB_WELL(m.finish());
    ab_comm* late = nullptr;
    AB_FAILS(api.comm_new(0, page.id(0), 2, 3, &late), AB_UNAVAILABLE, "which has named communicator simulated 1");
  };
  in_processes(2, body, {0});
}

TEST(SimdeviceProcessDeaths, AWaitForADeadProcessIsAFaultThatNamesIt) {
  const auto body = [](int process, Page& page) {
    Members m(page, process, 1, 2);
    if (process == 0) {
      AB_WELL(m.run(AB_ALL_REDUCE_SUM, 1));
    }
    page.meet(0, 2);
    if (process == 1) die();
    AB_FAILS(m.finish(), AB_FAULT, "deadlock: queue comm of device 0 waits for rank 1 of communicator");
    EXPECT_THAT(last_error(), HasSubstr("has ended (process "));
  };
  in_processes(2, body, {1});
}

}  // namespace
}  // namespace anabranch::device
