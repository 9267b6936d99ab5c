// The simulated device runs on the CPU and guarantees only what the interface of devices promises. It deliberately does
// what real devices do only sometimes: it runs work late and in another order. It reports accesses to released memory.
#include "device/build.h"
#include "process.h"

extern "C" __attribute__((visibility("default"))) const char* anabranch_device_build() { return ANABRANCH_VERSION; }

extern "C" __attribute__((visibility("default"))) const ab_device_api* anabranch_device_1() {
  static const ab_device_api api = [] {
    using namespace anabranch::simdevice;
    ab_device_api made{};
    made.size = sizeof made;
    made.flags = AB_DEVICE_SIMULATED | AB_DEVICE_NEEDS_MARKS;
    made.name = "simdevice";
    fill_process(made);
    fill_memory(made);
    fill_queues(made);
    fill_launches(made);
    fill_graphs(made);
    fill_comms(made);
    return made;
  }();
  return &api;
}
