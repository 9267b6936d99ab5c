// Captured work of the simulated device: runs as what was captured would have run, with what memory holds then.

#include "harness.h"

namespace anabranch::device {
namespace {

using testing::HasSubstr;

// x = x + 1 on one queue; y = 2 x on another one after it; x = x + y after that.
void put_step(Sim& sim, ab_queue* main, ab_queue* side, float* x, float* y) {
  AB_WELL(scale(main, x, x, 4, 1, 1));
  AB_WELL(api.queue_wait(side, sim.recorded(main)));
  AB_WELL(scale(side, x, y, 4, 2, 0));
  AB_WELL(api.queue_wait(main, sim.recorded(side)));
  AB_WELL(scale(main, y, x, 4, 1, 0.5));
}

TEST(SimdeviceCapture, AReplayIsWhatWasCaptured) {
  std::vector<float> plain;
  for (const bool captures : {false, true}) {
    for (const Flags& flags : all_orders()) {
      Sim sim(flags);
      ab_queue *main = sim.queue("main"), *side = sim.queue("side");
      float *x = sim.floats(4), *y = sim.floats(4);
      AB_WELL(scale(main, nullptr, x, 4, 1, 1));
      ab_graph* graph = nullptr;
      if (captures) {
        AB_WELL(api.capture_begin(main));
        put_step(sim, main, side, x, y);
        AB_WELL(api.capture_end(main, &graph));
        EXPECT_EQ(sim.read(y, 4).size(), 4u);
      }
      for (int iteration = 0; iteration < 4; ++iteration) {
        if (captures) {
          AB_WELL(api.graph_launch(graph, main));
        } else {
          put_step(sim, main, side, x, y);
        }
      }
      AB_WELL(scale(main, x, y, 4, 1, 0)) << "work after a graph runs after all of its queues";
      AB_WELL(sim.finish(main));
      const std::vector<float> held = sim.read(y, 4);
      if (plain.empty()) plain = held;
      EXPECT_EQ(held, plain);
      if (captures) {
        AB_WELL(api.graph_free(graph));
      }
    }
  }
  EXPECT_EQ(plain[0], 53.5f);  // x -> 2 (x + 1) + 0.5, four times from 1
}

TEST(SimdeviceCapture, WhatIsCapturedDoesNotRun) {
  Sim sim;
  ab_queue* q = sim.queue("main");
  float* x = sim.floats(4);
  AB_WELL(scale(q, nullptr, x, 4, 1, 1));
  AB_WELL(sim.finish(q));
  AB_WELL(api.capture_begin(q));
  AB_WELL(scale(q, nullptr, x, 4, 1, 2));
  ab_graph* graph = nullptr;
  AB_WELL(api.capture_end(q, &graph));
  AB_WELL(sim.finish(q));
  EXPECT_EQ(sim.read(x, 4)[0], 1.0f);
  AB_WELL(api.graph_launch(graph, q));
  AB_FAILS(api.graph_free(graph), AB_INVALID_ARGUMENT, "a graph is freed before it has passed");
  AB_WELL(sim.finish(q));
  EXPECT_EQ(sim.read(x, 4)[0], 2.0f);
  AB_WELL(api.graph_free(graph));
}

TEST(SimdeviceCapture, AReplayAfterItsMemoryMovedIsFound) {
  for (const Flags& flags : all_orders()) {
    for (const int frees : {1, 70}) {  // the address is not in use again yet, or belongs to another allocation
      Sim sim(flags);
      ab_queue* q = sim.queue("main");
      float* x = sim.floats(4);
      AB_WELL(api.capture_begin(q));
      AB_WELL(scale(q, nullptr, x, 4, 1, 2));
      ab_graph* graph = nullptr;
      AB_WELL(api.capture_end(q, &graph));
      AB_WELL(api.release(0, x));
      float* taken = nullptr;
      for (int i = 1; i < frees && taken != x; ++i) {
        taken = sim.floats(4);
        if (taken != x) {
          AB_WELL(api.release(0, taken));
        }
      }
      AB_WELL(api.graph_launch(graph, q));
      AB_FAILS(sim.finish(q), AB_FAULT,
               frees == 1 ? "which was released" : "which was allocated after its arguments were recorded");
    }
  }
}

TEST(SimdeviceCapture, LaunchesOfOneGraphDoNotOverlap) {
  for (const Flags& flags : all_orders()) {
    Sim sim(flags);
    ab_queue *a = sim.queue("a"), *b = sim.queue("b"), *side = sim.queue("side");
    float *x = sim.floats(4), *y = sim.floats(4);
    AB_WELL(scale(a, nullptr, x, 4, 1, 1));
    AB_WELL(sim.finish(a));
    AB_WELL(api.capture_begin(a));
    put_step(sim, a, side, x, y);
    ab_graph* graph = nullptr;
    AB_WELL(api.capture_end(a, &graph));
    AB_WELL(api.graph_launch(graph, a));
    AB_WELL(api.graph_launch(graph, b));
    AB_WELL(sim.finish(b));
    EXPECT_EQ(sim.read(x, 4)[0], 11.5f);
  }
}

TEST(SimdeviceCapture, AQueueWithoutAWaitIsRefused) {
  Sim sim;
  ab_queue *main = sim.queue("main"), *side = sim.queue("side");
  float *x = sim.floats(4), *y = sim.floats(4);
  AB_WELL(api.capture_begin(main));
  AB_WELL(scale(main, nullptr, x, 4, 1, 1));
  AB_WELL(api.queue_wait(side, sim.recorded(main)));
  AB_WELL(scale(side, x, y, 4, 1, 1));
  ab_graph* graph = nullptr;
  AB_FAILS(api.capture_end(main, &graph), AB_INVALID_ARGUMENT, "queue side of device 0 was captured, and queue main");
  EXPECT_EQ(graph, nullptr);
  AB_WELL(scale(side, nullptr, y, 4, 1, 3)) << "both go on as usual";
  AB_WELL(sim.finish(main));
  AB_WELL(sim.finish(side));
  EXPECT_EQ(sim.read(y, 4)[0], 3.0f);
}

TEST(SimdeviceCapture, NothingFromOutsideComesIn) {
  Sim sim;
  ab_queue *main = sim.queue("main"), *other = sim.queue("other");
  ab_event* outside = sim.recorded(other);
  ab_graph* graph = nullptr;

  AB_WELL(api.capture_begin(main));
  AB_FAILS(api.queue_wait(main, outside), AB_INVALID_ARGUMENT, "recorded outside of the capture");
  AB_FAILS(api.capture_end(main, &graph), AB_INVALID_ARGUMENT, "recorded outside of the capture");

  AB_WELL(api.capture_begin(main));
  ab_event* inside = sim.recorded(main);
  AB_FAILS(api.event_wait(inside, AB_FOREVER), AB_INVALID_ARGUMENT, "the host asks for an event");
  AB_FAILS(api.capture_end(main, &graph), AB_INVALID_ARGUMENT, "the host asks for an event");
  AB_FAILS(api.queue_wait(other, inside), AB_INVALID_ARGUMENT, "a capture, which is over");

  AB_WELL(api.capture_begin(main));
  AB_FAILS(api.capture_begin(main), AB_INVALID_ARGUMENT, "is captured already");
  AB_FAILS(api.queue_call(
               main, [](void*, int) {}, nullptr),
           AB_INVALID_ARGUMENT, "a call of the host");
  AB_FAILS(api.queue_free(main), AB_INVALID_ARGUMENT, "while it is captured");
  AB_FAILS(api.capture_end(main, &graph), AB_INVALID_ARGUMENT, "a call of the host");
  AB_FAILS(api.capture_end(main, &graph), AB_INVALID_ARGUMENT, "is not captured");
  AB_WELL(sim.finish(main));
}

TEST(SimdeviceCapture, CopiesReadThePinnedMemoryOfTheReplay) {
  for (const Flags& flags : all_orders()) {
    Sim sim(flags);
    ab_queue* q = sim.queue("up");
    float *p = sim.pinned(1), *x = sim.floats(1);
    p[0] = 1;
    AB_WELL(api.capture_begin(q));
    AB_WELL(api.copy(q, x, 0, p, AB_HOST_MEMORY, 4));
    ab_graph* graph = nullptr;
    AB_WELL(api.capture_end(q, &graph));
    for (float value : {2.0f, 3.0f}) {
      p[0] = value;
      AB_WELL(api.graph_launch(graph, q));
      AB_WELL(sim.finish(q));
      EXPECT_EQ(sim.read(x, 1)[0], value);
    }
    AB_WELL(api.graph_launch(graph, q));
    p[0] = 4;
    AB_FAILS(sim.finish(q), AB_FAULT, "pinned memory was written before copy of 4 bytes");
  }
}

}  // namespace
}  // namespace anabranch::device
