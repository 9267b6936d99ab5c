// How the simulation goes, as the engine's flags FLAGS_simdevice_<name> say it.
#pragma once
#include <cstdint>

#include "device/plugin_api.h"

namespace anabranch::simdevice {

// Which of the items that may run next does.
enum class Order : uint8_t {
  kRandom,
  kEarliest,  // that was put first: as a machine without queues
  kLatest,    // that was put last: what nobody waits for comes as late as it can
  kStarved,   // of one queue only when no other can go on
};

struct Settings {
  int devices = 2;                      // 1 to 8, fewer where CUDA_VISIBLE_DEVICES says so
  uint64_t bytes = uint64_t{16} << 30;  // memory of each
  uint64_t seed = 0;
  Order order = Order::kRandom;
  int64_t patience_ms = 10000;  // how long a wait without a deadline stands still before it is a fault
  bool lanes = true;            // many for a row of a kernel, in an order of the seed; else one
  bool compiles = true;         // makes kernels for tables
  bool explain_touches = true;  // a CPU that touches device memory prints what it touched before it dies
};

// InvalidArgument names the flag.
Settings read_settings(const ab_host* host);

}  // namespace anabranch::simdevice
