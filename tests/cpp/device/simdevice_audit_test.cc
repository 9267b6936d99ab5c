// Races that the simulated device finds in any order of the queues.
#include "harness.h"

namespace anabranch::device {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(SimdeviceAudit, AMissingWaitIsNamedInAnyOrder) {
  for (const Flags& flags : all_orders()) {
    for (const bool waits : {false, true}) {
      Sim sim(flags);
      ab_queue *up = sim.queue("up"), *compute = sim.queue("compute");
      float *x = sim.floats(4), *y = sim.floats(4);
      AB_WELL(api.queue_mark(up, "#1 feed"));
      AB_WELL(scale(up, nullptr, x, 4, 1, 1));
      ab_event* e = sim.recorded(up);
      if (waits) {
        AB_WELL(api.queue_wait(compute, e));
      }
      AB_WELL(api.queue_mark(compute, "#2 relu"));
      AB_WELL(scale(compute, x, y, 4, 2, 0));
      int status = sim.finish(compute);
      if (!status) status = sim.finish(up);
      ASSERT_EQ(status, waits ? AB_OK : AB_FAULT);
      if (waits) continue;
      EXPECT_THAT(last_error(), AllOf(HasSubstr("race: "), HasSubstr("#1 feed (test/scale/f32), queue up of device 0"),
                                      HasSubstr("#2 relu (test/scale/f32), queue compute of device 0"),
                                      HasSubstr("bytes 0 to 16 of block ")));
    }
  }
}

TEST(SimdeviceAudit, AWaitAfterTheLaunchIsARace) {
  for (const Flags& flags : all_orders()) {
    Sim sim(flags);
    ab_queue *up = sim.queue("up"), *compute = sim.queue("compute");
    float *x = sim.floats(4), *y = sim.floats(4);
    AB_WELL(scale(up, nullptr, x, 4, 1, 1));
    AB_WELL(scale(compute, x, y, 4, 2, 0));
    AB_WELL(api.queue_wait(compute, sim.recorded(up)));
    AB_FAILS(sim.finish(compute), AB_FAULT, "race: ");
  }
}

TEST(SimdeviceAudit, AnEventBeforeTheLaunchIsARace) {
  for (const Flags& flags : all_orders()) {
    Sim sim(flags);
    ab_queue *up = sim.queue("up"), *compute = sim.queue("compute");
    float *x = sim.floats(4), *y = sim.floats(4);
    ab_event* e = sim.recorded(up);
    AB_WELL(scale(up, nullptr, x, 4, 1, 1));
    AB_WELL(api.queue_wait(compute, e));
    AB_WELL(scale(compute, x, y, 4, 2, 0));
    int status = sim.finish(compute);
    if (!status) status = sim.finish(up);
    EXPECT_EQ(status, AB_FAULT);
    EXPECT_THAT(last_error(), HasSubstr("race: "));
  }
}

TEST(SimdeviceAudit, PartsOfABlockAreApart) {
  for (const Flags& flags : all_orders()) {
    for (const size_t first : {4u, 3u}) {  // elements of the second range: next to the first one, or over its end
      Sim sim(flags);
      ab_queue *a = sim.queue("a"), *b = sim.queue("b");
      float* x = sim.floats(8);
      AB_WELL(scale(a, nullptr, x, 4, 1, 1));
      AB_WELL(scale(b, nullptr, x + first, 4, 1, 1));
      int status = sim.finish(a);
      if (!status) status = sim.finish(b);
      EXPECT_EQ(status, first == 4 ? AB_OK : AB_FAULT) << last_error();
    }
  }
}

TEST(SimdeviceAudit, TheRestOfARangeKeepsItsWriter) {
  for (const Flags& flags : all_orders()) {
    for (const size_t part : {0u, 2u, 4u}) {  // four of eight elements are written again, with a wait
      for (const size_t rest : {0u, 6u}) {    // two of the others are read, without one
        if (rest >= part && rest < part + 4) continue;
        Sim sim(flags);
        ab_queue *a = sim.queue("a"), *b = sim.queue("b"), *c = sim.queue("c");
        float *x = sim.floats(8), *y = sim.floats(2);
        AB_WELL(scale(a, nullptr, x, 8, 1, 1));
        ab_event* written = sim.recorded(a);
        AB_WELL(api.queue_wait(b, written));
        AB_WELL(scale(b, nullptr, x + part, 4, 1, 1));
        AB_WELL(scale(c, x + rest, y, 2, 1, 0));
        int status = sim.finish(b);
        if (!status) status = sim.finish(c);
        EXPECT_EQ(status, AB_FAULT) << "bytes of queue a are read by queue c";
      }
    }
  }
}

TEST(SimdeviceAudit, ReadersNeedNoOrderAndAWriterNeedsAll) {
  for (const Flags& flags : all_orders()) {
    for (const bool waits_for_both : {false, true}) {
      Sim sim(flags);
      ab_queue *a = sim.queue("a"), *b = sim.queue("b"), *c = sim.queue("c");
      float *x = sim.floats(4), *y = sim.floats(4), *z = sim.floats(4);
      AB_WELL(scale(a, nullptr, x, 4, 1, 1));
      AB_WELL(api.queue_wait(b, sim.recorded(a)));
      AB_WELL(scale(a, x, y, 4, 1, 1));
      AB_WELL(scale(b, x, z, 4, 1, 1));
      if (waits_for_both) {
        AB_WELL(api.queue_wait(c, sim.recorded(a)));
      }
      AB_WELL(api.queue_wait(c, sim.recorded(b)));
      AB_WELL(scale(c, nullptr, x, 4, 1, 2));
      int status = sim.finish(c);
      if (!status) status = sim.finish(a);
      EXPECT_EQ(status, waits_for_both ? AB_OK : AB_FAULT) << last_error();
    }
  }
}

TEST(SimdeviceAudit, WhatTheHostWaitedForIsOrdered) {
  for (const Flags& flags : all_orders()) {
    Sim sim(flags);
    ab_queue *a = sim.queue("a"), *b = sim.queue("b");
    float *x = sim.floats(4), *y = sim.floats(4);
    AB_WELL(scale(a, nullptr, x, 4, 1, 1));
    AB_WELL(sim.finish(a));
    AB_WELL(scale(b, x, y, 4, 1, 1));
    AB_WELL(sim.finish(b));
  }
}

}  // namespace
}  // namespace anabranch::device
