// Opening, closing, what is missing, and what faults leave.
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

namespace anabranch::cuda {
namespace {

using testing::HasSubstr;

TEST_F(Cuda, OpensAndDescribesItsDevices) {
  Sim sim;
  EXPECT_EQ(sim.count(), 2);
  ab_device_info info{};
  info.size = sizeof info;
  AB_WELL(api.device_info(1, &info));
  EXPECT_STREQ(info.name, "a fake");
  EXPECT_EQ(info.major, 9);
  EXPECT_EQ(info.driver, 13000);
  EXPECT_EQ(info.memory, 1u << 20);
  size_t free_bytes = 0, total = 0;
  AB_WELL(api.memory_info(1, &free_bytes, &total));
  EXPECT_EQ(total, 1u << 20);
  EXPECT_EQ(fake::state().current, 1);
  AB_FAILS(api.memory_info(2, &free_bytes, &total), AB_INVALID_ARGUMENT, "there is no device 2; there are 2");
}

TEST_F(Cuda, SaysThatTheDriverIsMissing) {
  fake::state().driver = 0;
  int count = -1;
  AB_FAILS(open(&count), AB_UNAVAILABLE, "there is no NVIDIA driver: libcuda.so.1");
  AB_FAILS(api.close(), AB_UNAVAILABLE, "cuda is not open");
}

TEST_F(Cuda, SaysThatTheDriverIsTooOld) {
  fake::state().driver = 12040;
  int count = -1;
  AB_FAILS(open(&count), AB_UNAVAILABLE, "must be of CUDA 13.0 or newer, got 12.4");
}

TEST_F(Cuda, OpensWithoutDevices) {
  fake::state().devices = 0;
  int count = -1;
  AB_WELL(open(&count));
  EXPECT_EQ(count, 0);
  void* p = nullptr;
  AB_FAILS(api.allocate(0, 8, &p), AB_INVALID_ARGUMENT, "there is no device 0");
  AB_WELL(api.close());
}

TEST_F(Cuda, RefusesDevicesThatKernelsAreNotCompiledFor) {
  fake::state().major = 8;
  fake::state().minor = 6;
  int count = -1;
  AB_FAILS(open(&count), AB_UNSUPPORTED,
           "device 0 is of compute capability 8.6; kernels are compiled for 9.0 and later");
}

TEST_F(Cuda, IsOpenOnce) {
  int count = 0;
  AB_WELL(open(&count));
  AB_FAILS(open(&count), AB_INVALID_ARGUMENT, "open already");
  AB_WELL(api.close());
  AB_WELL(open(&count));
  AB_WELL(api.close());
}

TEST_F(Cuda, NamesWhatIsLeftAndClosesAllTheSame) {
  auto sim = std::make_unique<Sim>();
  sim->queue("compute");
  sim->event();
  sim->event();
  sim->floats(3);
  AB_FAILS(api.close(), AB_INVALID_ARGUMENT, "closed while there were 1 blocks of device memory, 1 queues, 2 events");
  AB_FAILS(api.close(), AB_UNAVAILABLE, "cuda is not open");
}

TEST_F(Cuda, RefusesEverythingInAForkedProcess) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  const pid_t child = fork();
  if (child == 0) {
    void* p = nullptr;
    int count = 0;
    const bool refused = api.allocate(0, 8, &p) == AB_UNAVAILABLE && api.fill(q, p, 0, 0) == AB_UNAVAILABLE &&
                         last_error().find("was forked after") != std::string::npos && api.close() == AB_UNAVAILABLE &&
                         open(&count) == AB_UNAVAILABLE;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  AB_WELL(api.fill(q, sim.floats(1), 0, 4));
}

TEST_F(Cuda, ReportsMissingMemory) {
  Sim sim;
  fail_next("cudaMalloc", cudaErrorMemoryAllocation);
  void* p = &sim;
  AB_FAILS(api.allocate(1, 12345, &p), AB_RESOURCE_EXHAUSTED, "12345 bytes of device 1");
  EXPECT_EQ(p, nullptr);
  AB_WELL(api.allocate(0, 0, &p));
  EXPECT_EQ(p, nullptr);
  AB_WELL(api.release(0, nullptr));
  AB_WELL(api.close());  // nothing is counted that was not made
}

TEST_F(Cuda, AFaultStaysUntilTheDevicesAreClosed) {
  Sim sim;
  ab_queue *compute = sim.queue("compute"), *up = sim.queue("up");
  ab_event* event = sim.recorded(compute);
  ab_event* timed = nullptr;
  AB_WELL(api.event_new(0, 1, &timed));
  AB_WELL(api.event_record(timed, up));
  float* memory = sim.floats(4);
  AB_WELL(api.queue_mark(compute, "#12 relu -> fc_0.tmp_1"));
  fake::state().sticky = cudaErrorIllegalAddress;
  AB_FAILS(api.event_wait(event, AB_FOREVER), AB_FAULT, "an illegal access (cudaErrorIllegalAddress)");
  EXPECT_THAT(last_error(), HasSubstr("last put into queue compute of device 0: #12 relu -> fc_0.tmp_1"));
  const std::string first = last_error();
  fake::state().sticky = cudaErrorLaunchFailure;
  int passed = 0;
  ab_graph* graph = nullptr;
  EXPECT_EQ(api.event_query(event, &passed, nullptr), AB_FAULT);
  EXPECT_EQ(api.event_record(event, up), AB_FAULT);
  EXPECT_EQ(api.queue_wait(up, event), AB_FAULT);
  EXPECT_EQ(api.fill(up, memory, 0, 16), AB_FAULT);
  EXPECT_EQ(api.copy(up, memory, 0, memory + 2, 0, 8), AB_FAULT);
  EXPECT_EQ(scale(up, nullptr, memory, 4, 1, 1), AB_FAULT);
  EXPECT_EQ(api.capture_begin(up), AB_FAULT);
  EXPECT_EQ(api.graph_launch(graph, up), AB_FAULT);
  EXPECT_EQ(api.queue_call(
                up, [](void*, int) {}, nullptr),
            AB_FAULT);
  EXPECT_EQ(last_error(), first);
  AB_WELL(api.release(0, memory));
  AB_WELL(api.queue_free(compute));
  AB_WELL(api.queue_free(up));
  AB_WELL(api.event_free(timed));
  AB_FAILS(api.event_wait(event, 0), AB_FAULT, first);
  AB_WELL(api.event_free(event));
  const auto& calls = fake::state().calls;
  const size_t before = calls.size();
  AB_WELL(api.close());
  const std::vector<std::string> closing(calls.begin() + static_cast<std::ptrdiff_t>(before), calls.end());
  EXPECT_THAT(closing, testing::ElementsAre("cudaStreamDestroy", "cudaEventDestroy", "cudaSetDevice", "cudaDeviceReset",
                                            "cudaSetDevice", "cudaDeviceReset"));
  Sim again;
  AB_WELL(again.finish(again.queue("compute")));
}

TEST_F(Cuda, AFaultThatIsFoundWhileFreeingDoesNotKeepAnything) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  void* memory = sim.floats(4);
  fake::state().sticky = cudaErrorLaunchFailure;
  AB_WELL(api.queue_free(q));
  AB_WELL(api.release(0, memory));
  AB_WELL(api.close());
}

TEST_F(Cuda, TextsAreCut) {
  int count = 0;
  fake::state().driver = 12040;
  open(&count);
  char text[5] = "????";
  EXPECT_EQ(api.last_error(text, sizeof text), last_error().size());
  EXPECT_STREQ(text, "the ");
}

}  // namespace
}  // namespace anabranch::cuda
