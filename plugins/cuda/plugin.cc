// NVIDIA GPUs. The plug-in contains the CUDA runtime, and opens the driver and the libraries by name.
#include <cstdlib>
#include <string_view>

#include "device/build.h"
#include "process.h"

namespace {

// Only then does an error come from the call that put the work in.
bool launches_block() {
  const char* text = std::getenv("CUDA_LAUNCH_BLOCKING");
  return text && std::string_view(text) == "1";
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const char* anabranch_device_build() { return ANABRANCH_VERSION; }

extern "C" __attribute__((visibility("default"))) const ab_device_api* anabranch_device_1() {
  static const ab_device_api api = [] {
    using namespace anabranch::cuda;
    ab_device_api made{};
    made.size = sizeof made;
    made.flags = launches_block() ? AB_DEVICE_NEEDS_MARKS : 0;
    made.name = "cuda";
    fill_process(made);
    fill_memory(made);
    fill_queues(made);
    fill_events(made);
    fill_launches(made);
    fill_graphs(made);
    fill_comms(made);
    return made;
  }();
  return &api;
}
