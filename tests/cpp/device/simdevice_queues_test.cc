// Queues and events of the simulated device: late, in any order that events allow, and the same again for a seed.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <set>
#include <thread>

#include "harness.h"

namespace anabranch::device {
namespace {

// Calls of the host note the order in which queues were run.
struct Trace {
  std::vector<int> order, told;
  struct Step {
    Trace* trace;
    int number;
  };
  std::vector<std::unique_ptr<Step>> steps;

  int add(ab_queue* queue, int number) {
    steps.push_back(std::make_unique<Step>(Step{this, number}));
    return api.queue_call(
        queue,
        [](void* arg, int status) {
          const auto* step = static_cast<Step*>(arg);
          step->trace->order.push_back(step->number);
          step->trace->told.push_back(status);
        },
        steps.back().get());
  }
};

// The order in which four queues with three items each run.
std::vector<int> order_of(const Flags& flags) {
  Sim sim(flags);
  Trace trace;
  std::vector<ab_queue*> queues;
  for (int i = 0; i < 4; ++i) queues.push_back(sim.queue("q"));
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(trace.add(queues[static_cast<size_t>(i % 4)], i), AB_OK);
  }
  for (ab_queue* q : queues) {
    EXPECT_EQ(sim.finish(q), AB_OK) << last_error();
  }
  return trace.order;
}

TEST(SimdeviceQueues, NothingRunsBeforeAWait) {
  for (const Flags& flags : all_orders()) {
    Sim sim(flags);
    Trace trace;
    ab_queue* q = sim.queue("compute");
    AB_WELL(trace.add(q, 1));
    ab_event* e = sim.recorded(q);
    EXPECT_TRUE(trace.order.empty());
    AB_WELL(api.event_wait(e, AB_FOREVER));
    EXPECT_EQ(trace.order, std::vector<int>{1});
  }
}

TEST(SimdeviceQueues, AQueuePassesInOrder) {
  for (const Flags& flags : all_orders()) {
    const std::vector<int> order = order_of(flags);
    ASSERT_EQ(order.size(), 12u);
    int last[4] = {-1, -1, -1, -1};
    for (const int i : order) {
      EXPECT_GT(i, last[i % 4]);
      last[i % 4] = i;
    }
  }
}

TEST(SimdeviceQueues, ASeedMeansAnOrder) {
  std::set<std::vector<int>> orders;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(order_of(seeded(seed)), order_of(seeded(seed)));
    orders.insert(order_of(seeded(seed)));
  }
  EXPECT_GT(orders.size(), 8u);
}

TEST(SimdeviceQueues, OrdersAreWhatTheySay) {
  std::vector<int> all(12);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order_of(seeded(0, "earliest")), all);
  // The wait is for queue 0; the last work runs first: the event of queue 0 comes after 0, 4, 8 and is the last.
  EXPECT_EQ(order_of(seeded(0, "latest")), (std::vector<int>{3, 7, 11, 2, 6, 10, 1, 5, 9, 0, 4, 8}));
  for (uint64_t seed = 1; seed < 4; ++seed) {  // queue number `seed` runs when no other can, or when it is waited for
    const std::vector<int> order = order_of(seeded(seed, "starved"));
    const auto first = std::find_if(order.begin(), order.end(), [&](int i) { return i % 4 == static_cast<int>(seed); });
    for (auto later = first; later != order.end(); ++later) {
      EXPECT_GE(static_cast<uint64_t>(*later % 4), seed) << "queues before it were waited for before";
    }
  }
}

TEST(SimdeviceQueues, AWaitMeansTheRecordBefore) {
  for (const Flags& flags : all_orders()) {
    Sim sim(flags);
    Trace trace;
    ab_queue *a = sim.queue("a"), *b = sim.queue("b");
    ab_event* e = sim.event();
    AB_WELL(api.queue_wait(b, e)) << "never recorded: no wait";
    AB_WELL(trace.add(a, 1));
    AB_WELL(api.event_record(e, a));
    AB_WELL(api.queue_wait(b, e));
    AB_WELL(trace.add(a, 2));
    AB_WELL(api.event_record(e, a));
    AB_WELL(trace.add(b, 3));
    AB_WELL(api.event_free(e)) << "waits stay";
    AB_WELL(sim.finish(b));
    AB_WELL(sim.finish(a));
    const auto at = [&](int i) { return std::find(trace.order.begin(), trace.order.end(), i); };
    EXPECT_LT(at(1), at(3));
  }
}

TEST(SimdeviceQueues, AskingGetsThereInTheEnd) {
  for (const Flags& flags : all_orders()) {
    Sim sim(flags);
    ab_queue* q = sim.queue("compute");
    ab_event *first = nullptr, *last = nullptr;
    AB_WELL(api.event_new(0, 1, &first));
    AB_WELL(api.event_new(0, 1, &last));
    AB_WELL(api.event_record(first, q));
    float* x = sim.floats(4);
    AB_WELL(scale(q, nullptr, x, 4, 1, 1));
    AB_WELL(api.event_record(last, q));
    int passed = 0, iterations = 0;
    uint64_t begin = 0, end = 0;
    for (; !passed; ++iterations) {
      AB_WELL(api.event_query(last, &passed, &end));
    }
    EXPECT_LE(iterations, 3);
    AB_WELL(api.event_query(first, &passed, &begin));
    EXPECT_EQ(end - begin, 2000u) << "simulated: 1000 an item";
    AB_WELL(api.release(0, x)) << "the answer counts as a wait";
  }
}

TEST(SimdeviceQueues, WaitingForNoTimeGetsThereInTheEnd) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  float* x = sim.floats(4);
  for (int i = 0; i < 10; ++i) AB_WELL(scale(q, nullptr, x, 4, 1, 1));
  ab_event* e = sim.recorded(q);
  AB_FAILS(api.event_wait(e, 0), AB_TIMED_OUT, "the event has not passed within 0 ms: queue compute of device 0");
  int iterations = 1;
  while (api.event_wait(e, 0) == AB_TIMED_OUT) ++iterations;
  EXPECT_EQ(iterations, 10) << "one item each time";
  AB_WELL(api.event_wait(e, 0));
}

TEST(SimdeviceQueues, AFaultIsKeptAndCallsReportIt) {
  Sim sim;
  Trace trace;
  ab_queue *q = sim.queue("compute"), *other = sim.queue("other");
  float* x = sim.floats(3);
  AB_WELL(trace.add(q, 1));
  AB_WELL(scale(q, nullptr, x, 4, 1, 1));
  AB_WELL(trace.add(q, 2));
  ab_event* e = sim.recorded(q);
  AB_FAILS(api.event_wait(e, AB_FOREVER), AB_FAULT, "access of 16 bytes");
  EXPECT_EQ(trace.order, (std::vector<int>{1, 2}));
  EXPECT_EQ(trace.told, (std::vector<int>{AB_OK, AB_FAULT}));
  AB_FAILS(api.event_wait(e, AB_FOREVER), AB_FAULT, "access of 16 bytes");
  AB_FAILS(scale(other, nullptr, x, 3, 1, 1), AB_FAULT, "access of 16 bytes");
  int passed = 0;
  AB_FAILS(api.event_query(e, &passed, nullptr), AB_FAULT, "access of 16 bytes");
  AB_WELL(api.release(0, x));
  AB_WELL(api.queue_free(q));
}

TEST(SimdeviceQueues, ThreadsMayShareTheDevice) {
  Sim sim(seeded(5));
  std::vector<std::thread> threads;
  std::vector<float> results(4);
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      ab_queue* q = sim.queue("own");
      float *x = sim.floats(8), *down = sim.pinned(8);
      EXPECT_EQ(scale(q, nullptr, x, 8, 1, static_cast<double>(t)), AB_OK);
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(scale(q, x, x, 8, 1, 1), AB_OK);
        if (i % 5 == 0) {
          EXPECT_EQ(sim.finish(q), AB_OK) << last_error();
        }
      }
      EXPECT_EQ(api.copy(q, down, AB_HOST_MEMORY, x, 0, 32), AB_OK);
      EXPECT_EQ(sim.finish(q), AB_OK) << last_error();
      results[t] = down[7];
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < 4; ++t) {
    EXPECT_EQ(results[t], 20.0f + static_cast<float>(t));
  }
}

TEST(SimdeviceQueues, AForkedProcessHasNoDevices) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  EXPECT_EXIT(
      {
        void* p = nullptr;
        const bool well = api.allocate(0, 16, &p) == AB_UNAVAILABLE && api.queue_free(q) == AB_UNAVAILABLE &&
                          api.close() == AB_UNAVAILABLE && last_error().find("forked") != std::string::npos;
        _exit(well ? 3 : 4);
      },
      testing::ExitedWithCode(3), "");
  AB_WELL(sim.finish(q));
}

// The item lasts about as long as the patience, so that it ends when the other thread loses its own.
TEST(SimdeviceQueues, AnItemThatAnotherThreadRunsIsNotAStandstill) {
  struct Long {
    std::atomic<bool> begun{false};
    int us;
  };
  Sim sim(seeded(0, "earliest"));  // whose patience is 50 ms
  ab_queue* q = sim.queue("compute");
  for (int iteration = 0; iteration < 30; ++iteration) {
    Long item;
    item.us = 49800 + 20 * iteration;
    const auto lasts = [](void* arg, int) {
      static_cast<Long*>(arg)->begun = true;
      std::this_thread::sleep_for(std::chrono::microseconds(static_cast<Long*>(arg)->us));
    };
    AB_WELL(api.queue_call(q, lasts, &item));
    ab_event* end = sim.recorded(q);
    int passed = 0;
    std::thread asks([&] { EXPECT_EQ(api.event_query(end, &passed, nullptr), AB_OK) << last_error(); });
    while (!item.begun) std::this_thread::yield();
    EXPECT_EQ(api.event_wait(end, AB_FOREVER), AB_OK) << last_error();
    asks.join();
  }
}

}  // namespace
}  // namespace anabranch::device
