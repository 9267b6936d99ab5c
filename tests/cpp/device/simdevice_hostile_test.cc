// Errors of the simulated device when a caller breaks the rules of the interface, and its library calls.

#include <cstring>

#include "harness.h"

namespace anabranch::device {
namespace {

using testing::HasSubstr;

TEST(SimdeviceHostile, NothingWorksBeforeItIsOpen) {
  void* p = nullptr;
  AB_FAILS(api.allocate(0, 16, &p), AB_UNAVAILABLE, "simdevice is not open");
  AB_FAILS(api.close(), AB_UNAVAILABLE, "simdevice is not open");
}

TEST(SimdeviceHostile, SettingsAreChecked) {
  const auto open_with = [](const char* name, const char* value) {
    struct Pair {
      const char *name, *value;
    } pair{name, value};
    ab_host host{};
    host.size = sizeof host;
    host.self = &pair;
    host.setting = [](void* self, const char* asked) -> const char* {
      const auto* known = static_cast<Pair*>(self);
      return strcmp(known->name, asked) == 0 ? known->value : nullptr;
    };
    int devices = 0;
    return api.open(&host, &devices);
  };
  AB_FAILS(open_with("simdevice_devices", "9"), AB_INVALID_ARGUMENT,
           "FLAGS_simdevice_devices must be a number from 1 to 8, got \"9\"");
  AB_FAILS(open_with("simdevice_seed", "x1"), AB_INVALID_ARGUMENT, "FLAGS_simdevice_seed must be a number");
  AB_FAILS(open_with("simdevice_lanes", "2"), AB_INVALID_ARGUMENT,
           "FLAGS_simdevice_lanes must be a number from 0 to 1, got \"2\"");
  AB_FAILS(open_with("simdevice_order", "any"), AB_INVALID_ARGUMENT, "must be random, earliest, latest or starved");
  AB_WELL(open_with("none", ""));
  int devices = 0;
  AB_FAILS(api.open(nullptr, &devices), AB_INVALID_ARGUMENT, "open already");
  AB_WELL(api.close());
}

TEST(SimdeviceHostile, WhatIsLeftAtTheEndIsNamed) {
  int devices = 0;
  AB_WELL(api.open(nullptr, &devices));
  EXPECT_EQ(devices, 2);
  void* p = nullptr;
  ab_queue* q = nullptr;
  AB_WELL(api.allocate(1, 24, &p));
  AB_WELL(api.queue_new(0, 0, nullptr, &q));
  int told = -1;
  const auto note = [](void* arg, int status) { *static_cast<int*>(arg) = status; };
  AB_WELL(api.queue_call(q, note, &told));
  AB_FAILS(api.close(), AB_INVALID_ARGUMENT,
           "closed while there were 1 blocks (24 bytes) of device 1, 1 times a queue");
  EXPECT_EQ(told, AB_FAULT);
  AB_WELL(api.open(nullptr, &devices)) << "closed all the same";
  AB_WELL(api.close());
}

TEST(SimdeviceHostile, HandlesAreChecked) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  ab_event* e = sim.event();
  AB_WELL(api.event_free(e));
  AB_FAILS(api.event_free(e), AB_INVALID_ARGUMENT, "this is not an event, or it was freed");
  AB_FAILS(api.event_record(e, q), AB_INVALID_ARGUMENT, "this is not an event");
  AB_FAILS(api.queue_free(nullptr), AB_INVALID_ARGUMENT, "this is not a queue");
  AB_FAILS(api.fill(nullptr, nullptr, 0, 4), AB_INVALID_ARGUMENT, "this is not a queue");
  AB_FAILS(api.graph_launch(nullptr, q), AB_INVALID_ARGUMENT, "this is not a graph");
  AB_FAILS(api.library_free(nullptr), AB_INVALID_ARGUMENT, "this is not a library call");
  AB_FAILS(api.comm_free(nullptr, 0), AB_INVALID_ARGUMENT, "this is not a communicator");
  AB_FAILS(api.event_record(sim.event(1), q), AB_INVALID_ARGUMENT, "an event of device 1 is recorded in queue compute");
  AB_FAILS(api.queue_new(2, 0, "x", &q), AB_INVALID_ARGUMENT, "device must be from 0 to 1, got 2");
  AB_FAILS(api.queue_new(-1, 0, "x", &q), AB_INVALID_ARGUMENT, "device must be from 0 to 1, got -1");
  AB_FAILS(api.event_new(0, 0, nullptr), AB_INVALID_ARGUMENT, "out must not be null");
  char inside = 0;
  AB_FAILS(api.release(0, &inside), AB_INVALID_ARGUMENT, "an address that is not of device 0");
  float* x = sim.floats(4);
  AB_FAILS(api.release(0, x + 1), AB_INVALID_ARGUMENT, "byte 4 of block ");
  AB_WELL(api.release(0, x));
  AB_FAILS(api.release(0, x), AB_INVALID_ARGUMENT, "which was released and had 16 bytes");
}

TEST(SimdeviceHostile, AQueueWithWorkIsNotFreed) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  AB_WELL(scale(q, nullptr, sim.floats(4), 4, 1, 1));
  AB_FAILS(api.queue_free(q), AB_INVALID_ARGUMENT, "queue compute of device 0 is freed with 1 items in it");
  AB_WELL(sim.finish(q));
  AB_WELL(api.queue_free(q));
}

TEST(SimdeviceHostile, KernelsMadeForATableDoWhatTheOthersDoUntilTheyAreFreed) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  const int table = 1;
  ab_kernel made = nullptr;
  AB_WELL(api.kernel_make(kernel("test/scale/f32"), &table, sizeof table, &made));
  float* y = sim.floats(2);
  const MapArgs args{{}, {y, 8}, 2, {0, 7}};
  AB_WELL(api.launch(q, made, &args, sizeof args, nullptr, 0));
  AB_WELL(sim.finish(q));
  EXPECT_THAT(sim.read(y, 2), testing::Each(7));
  AB_FAILS(api.kernel_make(made, &table, 0, &made), AB_INVALID_ARGUMENT, "a table must not be empty");
  AB_FAILS(api.kernel_free(kernel("test/scale/f32")), AB_INVALID_ARGUMENT, "this is not a made kernel");
  AB_WELL(api.kernel_free(made));
  AB_FAILS(api.kernel_free(made), AB_INVALID_ARGUMENT, "this is not a made kernel, or it was freed");
}

TEST(SimdeviceHostile, KernelsAreChecked) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  ab_kernel k = nullptr;
  AB_FAILS(api.kernel_find("map/unknown/f32", &k), AB_NOT_FOUND, "simdevice has no kernel map/unknown/f32");
  MapArgs args{};
  AB_FAILS(api.launch(q, kernel("test/scale/f32"), &args, 8, nullptr, 0), AB_INVALID_ARGUMENT,
           "kernel test/scale/f32 takes args of 72 bytes, got 8");
  AB_FAILS(api.launch(q, nullptr, &args, sizeof args, nullptr, 0), AB_INVALID_ARGUMENT, "kernel must not be null");
  AB_WELL(sim.finish(q));
}

TEST(SimdeviceHostile, TextsOfFailuresAreCut) {
  Sim sim;
  EXPECT_EQ(api.queue_free(nullptr), AB_INVALID_ARGUMENT);
  char text[9] = "";
  const size_t whole = api.last_error(text, sizeof text);
  EXPECT_STREQ(text, "this is ");
  EXPECT_GT(whole, 20u);
  EXPECT_EQ(api.last_error(nullptr, 0), whole);
}

TEST(SimdeviceHostile, DevicesSayWhatTheyAre) {
  Sim sim({}, 3);
  EXPECT_EQ(sim.count(), 3);
  ab_device_info info{};
  AB_FAILS(api.device_info(1, &info), AB_INVALID_ARGUMENT, "ab_device_info must be of 408 bytes");
  info.size = sizeof info;
  AB_WELL(api.device_info(1, &info));
  EXPECT_STREQ(info.name, "simulated device 1");
  EXPECT_EQ(info.memory, 1048576u);
  EXPECT_TRUE(api.flags & AB_DEVICE_SIMULATED);
}

// The host's library: "sum" adds its first operand up into its second one.
int host_room(void*, const char* key, const void*, size_t, size_t* workspace, char* text, size_t room) {
  if (strcmp(key, "sum") != 0) {
    snprintf(text, room, "no %s here", key);
    return AB_NOT_FOUND;
  }
  *workspace = 64;
  return AB_OK;
}

int host_run(void*, const char*, const void* desc, size_t, void* const* pointers, int count, void* workspace,
             char* text, size_t room) {
  int32_t n = 0;
  memcpy(&n, desc, sizeof n);
  if (count != 2 || !workspace || n < 0) {
    snprintf(text, room, "n must not be below 0, got %d", n);
    return AB_INVALID_ARGUMENT;
  }
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += static_cast<float*>(pointers[0])[i];
  *static_cast<float*>(pointers[1]) = sum;
  return AB_OK;
}

struct LibraryCall {
  explicit LibraryCall(Sim& sim) : x(sim.floats(4)), y(sim.floats(1)), workspace(sim.floats(16)) {
    sim.host().library_room = host_room;
    sim.host().library_run = host_run;
  }
  int plan(int32_t n, size_t* room) { return api.library_plan(0, "sum", &n, sizeof n, &library, room); }
  int run(ab_queue* queue) {
    const ab_operand operands[] = {{x, 16, AB_READ, 0}, {y, 4, AB_WRITE, 0}};
    return api.library_run(queue, library, operands, 2, workspace, 64);
  }
  float *x, *y, *workspace;
  ab_library* library = nullptr;
};

TEST(SimdeviceLibraries, CallsAreTheHosts) {
  for (const Flags& flags : all_orders()) {
    for (const bool waits : {true, false}) {
      Sim sim(flags);
      LibraryCall call(sim);
      size_t room = 0;
      AB_WELL(call.plan(4, &room));
      EXPECT_EQ(room, 64u);
      ab_queue *q = sim.queue("compute"), *other = sim.queue("other");
      AB_WELL(scale(q, nullptr, call.x, 4, 1, 2.5));
      if (waits) {
        AB_WELL(api.queue_wait(other, sim.recorded(q)));
      }
      AB_WELL(call.run(other));
      int status = sim.finish(other);
      if (!status) status = sim.finish(q);
      ASSERT_EQ(status, waits ? AB_OK : AB_FAULT) << last_error();
      if (waits) {
        EXPECT_EQ(sim.read(call.y, 1)[0], 10.0f);
        AB_WELL(api.library_free(call.library));
      } else {
        EXPECT_THAT(last_error(), testing::AllOf(HasSubstr("race: "), HasSubstr("library call sum, queue other")));
      }
    }
  }
}

TEST(SimdeviceLibraries, WhatACallWritesIsWaitedFor) {
  for (const Flags& flags : all_orders()) {
    Sim sim(flags);
    LibraryCall call(sim);
    size_t room = 0;
    AB_WELL(call.plan(4, &room));
    ab_queue *q = sim.queue("compute"), *other = sim.queue("other");
    AB_WELL(scale(q, nullptr, call.x, 4, 1, 2.5));
    AB_WELL(call.run(q));
    AB_WELL(scale(other, call.y, sim.floats(1), 1, 1, 0));
    int status = sim.finish(other);
    if (!status) status = sim.finish(q);
    ASSERT_EQ(status, AB_FAULT);
    EXPECT_THAT(last_error(), testing::AllOf(HasSubstr("race: "), HasSubstr("library call sum, queue compute")));
  }
}

TEST(SimdeviceLibraries, FailuresAreTheHosts) {
  Sim sim;
  LibraryCall call(sim);
  ab_queue* q = sim.queue("compute");
  size_t room = 0;
  AB_FAILS(api.library_plan(0, "conv9d", nullptr, 0, &call.library, &room), AB_NOT_FOUND, "no conv9d here");
  AB_WELL(call.plan(-2, &room));
  AB_FAILS(api.library_run(q, call.library, nullptr, 0, nullptr, 0), AB_INVALID_ARGUMENT,
           "sum needs 64 bytes of workspace, got 0");
  AB_WELL(call.run(q));
  AB_FAILS(sim.finish(q), AB_FAULT, "n must not be below 0, got -2 in library call sum, queue compute of device 0");
}

TEST(SimdeviceLibraries, WithoutAHostThereAreNone) {
  Sim sim;
  ab_library* library = nullptr;
  size_t room = 0;
  AB_FAILS(api.library_plan(0, "gemm", nullptr, 0, &library, &room), AB_UNAVAILABLE,
           "the host offers no library calls");
}

}  // namespace
}  // namespace anabranch::device
