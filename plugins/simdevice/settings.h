// Settings of the simulation, from the engine's flags FLAGS_simdevice_<name>.
#pragma once
#include <cstdint>

#include "device/plugin_api.h"

namespace anabranch::simdevice {

// Choice among the items that may run next.
enum class Order : uint8_t {
  kRandom,
  kEarliest,  // enqueued first: as a machine without queues
  kLatest,    // enqueued last: unawaited work runs as late as possible
  kStarved,   // of one queue only if no other can run
};

struct Settings {
  int devices = 2;                      // 1 to 8, fewer if CUDA_VISIBLE_DEVICES says so
  uint64_t bytes = uint64_t{16} << 30;  // memory of each
  uint64_t seed = 0;
  Order order = Order::kRandom;
  int64_t patience_ms = 10000;  // time after which a stuck wait without a deadline is a fault
  bool lanes = true;            // many per row of a kernel, in an order of the seed; otherwise one
  bool compiles = true;         // creates kernels for tables
  bool explain_touches = true;  // prints the accessed location before a CPU access to device memory ends the process
};

// InvalidArgument names the flag.
Settings read_settings(const ab_host* host);

}  // namespace anabranch::simdevice
