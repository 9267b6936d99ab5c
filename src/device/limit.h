// How much of a device's memory this process may take.
#pragma once
#include <cstdint>
#include <string>

namespace anabranch::device {

class Devices;

struct Limit {
  int64_t bytes = 0;
  std::string says;  // "FLAGS_gpu_memory_limit_mb allows 100 MB", for errors
};

// FLAGS_gpu_memory_limit_mb, or FLAGS_fraction_of_gpu_memory_to_use of what the device has, whichever is less.
// InvalidArgument if the flags are out of range.
Limit limit_of(const Devices& devices, int device);

}  // namespace anabranch::device
