// The CUDA calls that queues, events, launches and captures become.
#include "cuda/clock.h"
#include "harness.h"

namespace anabranch::cuda {
namespace {

TEST_F(Cuda, CopiesByTheirPlaces) {
  Sim sim;
  ab_queue* q = sim.queue("up");
  float *host = sim.pinned(2), *one = sim.floats(2), *other = sim.floats(2, 1);
  host[0] = 3;
  host[1] = 4;
  AB_WELL(api.copy(q, one, 0, host, AB_HOST_MEMORY, 8));
  EXPECT_TRUE(did("kind 1"));
  AB_WELL(api.copy(q, other, 1, one, 0, 8));
  EXPECT_TRUE(did("cudaMemcpyPeerAsync"));
  AB_WELL(api.copy(q, one + 1, 0, one, 0, 4));
  EXPECT_TRUE(did("kind 3"));
  EXPECT_THAT(sim.read(one, 2), testing::ElementsAre(3, 3));
  EXPECT_TRUE(did("kind 2"));
  EXPECT_THAT(sim.read(other, 2, 1), testing::ElementsAre(3, 4));
  AB_FAILS(api.copy(q, other, 1, host, AB_HOST_MEMORY, 8), AB_INVALID_ARGUMENT,
           "from device -1 to device 1 is put into a queue of device 0");
  AB_FAILS(api.copy(q, one, 0, other, 7, 8), AB_INVALID_ARGUMENT, "there is no device 7");
}

TEST_F(Cuda, QueuesHavePriorities) {
  Sim sim;
  sim.queue("usual");
  EXPECT_TRUE(did("priority 0"));
  ab_queue* early = nullptr;
  AB_WELL(api.queue_new(0, 3, "early", &early));
  EXPECT_TRUE(did("priority -5"));
}

TEST_F(Cuda, AQueueIsFreedWhenItIsEmpty) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  float* memory = sim.floats(1);
  fake::state().held = true;
  AB_WELL(api.fill(q, memory, 0, 4));
  AB_FAILS(api.queue_free(q), AB_INVALID_ARGUMENT, "queue compute of device 0 is freed before");
  fake::let_go();
  AB_WELL(api.queue_free(q));
}

TEST_F(Cuda, WaitsEndAtTheirDeadline) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  fake::state().held = true;
  ab_event* event = sim.recorded(q);
  int passed = -1;
  AB_WELL(api.event_query(event, &passed, nullptr));
  EXPECT_EQ(passed, 0);
  AB_FAILS(api.event_wait(event, 3), AB_TIMED_OUT, "an event of device 0 has not passed after 3 ms");
  fake::let_go();
  AB_WELL(api.event_wait(event, 0));
  AB_WELL(api.event_wait(sim.event(), 0));  // never recorded
}

TEST_F(Cuda, EventsBelongToADevice) {
  Sim sim;
  AB_FAILS(api.event_record(sim.event(1), sim.queue("compute", 0)), AB_INVALID_ARGUMENT, "an event of device 1");
}

uint64_t time_of(ab_event* event) {
  int passed = 0;
  uint64_t ns = 0;
  EXPECT_EQ(api.event_query(event, &passed, &ns), AB_OK) << last_error();
  EXPECT_EQ(passed, 1);
  return ns;
}

TEST_F(Cuda, TimedEventsTellNanoseconds) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  ab_event *one = nullptr, *two = nullptr;
  AB_WELL(api.event_new(0, 1, &one));
  AB_WELL(api.event_new(0, 1, &two));
  AB_WELL(api.event_record(one, q));
  fake::state().now_ns += 1500;
  AB_WELL(api.event_record(two, q));
  EXPECT_EQ(time_of(two) - time_of(one), 1500u);
  int passed = 0;
  uint64_t ns = 77;
  AB_WELL(api.event_query(sim.recorded(q), &passed, &ns));  // not timed
  EXPECT_EQ(ns, 77u);
}

TEST_F(Cuda, TimesStayExactForHours) {
  Clock clock(0, std::chrono::seconds(0));  // each event has its own moment
  cudaEvent_t event = nullptr;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDefault), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const double begin = fake::state().now_ns;
  uint64_t before = 0;
  clock.recent();
  for (int i = 0; i < 4000; ++i) {
    fake::state().now_ns += 3.6e9;
    const auto moment = clock.recent();
    fake::state().now_ns += 1500;
    ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
    const uint64_t now = Clock::ns(*moment, event);
    if (i) {
      EXPECT_NEAR(static_cast<double>(now - before), 3.6e9 + 1500, 200) << i;
    }
    before = now;
  }
  EXPECT_NEAR(static_cast<double>(before), fake::state().now_ns - begin, 1e6);
  cudaEventDestroy(event);
  cudaStreamDestroy(stream);
}

struct Called {
  int times = 0, status = -1;
  static void by(void* arg, int status) {
    auto* called = static_cast<Called*>(arg);
    ++called->times;
    called->status = status;
  }
};

TEST_F(Cuda, CallsOfTheHostComeAlsoAfterAFault) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  Called well, lost;
  AB_WELL(api.queue_call(q, Called::by, &well));
  EXPECT_EQ(well.status, AB_OK);
  fake::state().held = true;
  AB_WELL(api.queue_call(q, Called::by, &lost));
  EXPECT_EQ(lost.times, 0);
  fake::state().sticky = cudaErrorIllegalAddress;
  fake::let_go();
  EXPECT_EQ(lost.status, AB_FAULT);
}

TEST_F(Cuda, ACallThatFailsToBePutInIsNotMade) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  Called called;
  fail_next("cudaStreamAddCallback", cudaErrorInvalidResourceHandle);
  AB_FAILS(api.queue_call(q, Called::by, &called), AB_INVALID_ARGUMENT, "a call of the host");
  EXPECT_EQ(called.times, 0);
}

TEST_F(Cuda, LaunchesKernelsOfTheQueuesDevice) {
  Sim sim;
  ab_queue* q = sim.queue("compute", 1);
  float* y = sim.floats(3, 1);
  AB_WELL(api.fill(sim.queue("other", 0), sim.floats(1), 0, 4));
  AB_WELL(scale(q, nullptr, y, 3, 0, 7));
  EXPECT_EQ(fake::state().current, 1);
  EXPECT_THAT(sim.read(y, 3, 1), testing::Each(7));
  ab_kernel none = nullptr;
  AB_FAILS(api.kernel_find("map/nothing/f32", &none), AB_NOT_FOUND, "cuda has no kernel map/nothing/f32");
  char few[3] = {};
  AB_FAILS(api.launch(q, kernel("test/scale/f32"), few, sizeof few, nullptr, 0), AB_INVALID_ARGUMENT,
           "kernel test/scale/f32 takes args of");
}

TEST_F(Cuda, LaunchesHaveTheWorkspaceThatTheyNeed) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  float* x = sim.floats(3);
  const MapArgs args{{x, 12}, {x, 12}, 3, {}};
  size_t room = 0;
  AB_WELL(scale(q, nullptr, x, 3, 0, 5));
  AB_WELL(api.kernel_room(kernel("test/square/f32"), &args, sizeof args, &room));
  EXPECT_EQ(room, 12u);
  const auto run = [&](void* workspace, size_t bytes) {
    return api.launch(q, kernel("test/square/f32"), &args, sizeof args, workspace, bytes);
  };
  AB_FAILS(run(nullptr, 12), AB_INVALID_ARGUMENT, "kernel test/square/f32 needs a workspace of 12 bytes, got 0");
  AB_FAILS(run(x, 11), AB_INVALID_ARGUMENT, "needs a workspace of 12 bytes, got 11");
  AB_WELL(run(sim.floats(3), 12));
  EXPECT_THAT(sim.read(x, 3), testing::Each(25));
}

TEST_F(Cuda, LaunchesThatFailNameTheKernel) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  float* x = sim.floats(3);
  fake::state().last = cudaErrorInvalidConfiguration;
  AB_FAILS(scale(q, nullptr, x, 3, 0, 5), AB_INVALID_ARGUMENT, "kernel test/scale/f32: ");
  AB_WELL(scale(q, nullptr, x, 3, 0, 5));
}

TEST_F(Cuda, CapturedWorkRunsWhenItsGraphIsLaunched) {
  Sim sim;
  ab_queue *compute = sim.queue("compute"), *up = sim.queue("up");
  float* y = sim.floats(2);
  AB_WELL(api.fill(compute, y, 0, 8));
  ab_event *begin = sim.event(), *end = sim.event();
  AB_WELL(api.capture_begin(compute));
  EXPECT_TRUE(did("mode 2"));  // relaxed: any thread may go on
  AB_WELL(api.event_record(begin, compute));
  AB_WELL(api.queue_wait(up, begin));
  AB_WELL(scale(up, y, y, 2, 1, 1));
  AB_WELL(api.event_record(end, up));
  AB_WELL(api.queue_wait(compute, end));
  int passed = 0;
  AB_FAILS(api.event_query(end, &passed, nullptr), AB_INVALID_ARGUMENT, "recorded in a capture");
  ab_graph* graph = nullptr;
  AB_WELL(api.capture_end(compute, &graph));
  EXPECT_EQ(y[0], 0);
  AB_WELL(api.graph_launch(graph, compute));
  AB_WELL(api.graph_launch(graph, compute));
  EXPECT_EQ(y[1], 2);
  AB_WELL(api.graph_free(graph));
}

TEST_F(Cuda, BrokenCapturesEnd) {
  Sim sim;
  ab_queue *compute = sim.queue("compute"), *up = sim.queue("up");
  ab_graph* graph = nullptr;
  AB_WELL(api.capture_begin(compute));
  AB_FAILS(api.capture_begin(compute), AB_INVALID_ARGUMENT, "beginning a capture");
  AB_FAILS(api.queue_call(compute, Called::by, nullptr), AB_INVALID_ARGUMENT,
           "a call of the host while it was captured");
  AB_FAILS(api.capture_end(compute, &graph), AB_INVALID_ARGUMENT, "ending a capture");
  AB_WELL(api.capture_begin(compute));
  AB_WELL(api.queue_wait(up, sim.recorded(compute)));
  AB_FAILS(api.capture_end(compute, &graph), AB_INVALID_ARGUMENT, "did not wait for another queue");
  AB_FAILS(api.capture_end(compute, &graph), AB_INVALID_ARGUMENT, "ending a capture");
  EXPECT_EQ(graph, nullptr);
  AB_WELL(api.fill(compute, sim.floats(1), 0, 4));
  AB_WELL(sim.finish(compute));
}

}  // namespace
}  // namespace anabranch::cuda
