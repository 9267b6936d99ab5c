// The simulated device: what the interface of devices promises and no more, on the CPU. What real devices do only when
// they feel like it - running late, in another order, on memory that is gone - it does on purpose, and names it.
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
