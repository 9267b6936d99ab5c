#include "device/limit.h"

#include "base/error.h"
#include "base/flags.h"
#include "device/devices.h"

namespace anabranch::device {

Limit limit_of(const Devices& devices, int device) {
  const auto fraction = std::get<double>(get_flag("FLAGS_fraction_of_gpu_memory_to_use"));
  const auto megabytes = std::get<int64_t>(get_flag("FLAGS_gpu_memory_limit_mb"));
  AB_CHECK(fraction >= 0 && fraction <= 1, InvalidArgument,
           "FLAGS_fraction_of_gpu_memory_to_use must be from 0 to 1, got {}", fraction);
  AB_CHECK(megabytes >= 0 && megabytes < (int64_t{1} << 40), InvalidArgument,
           "FLAGS_gpu_memory_limit_mb must be a number of megabytes, 0 for no limit, got {}", megabytes);
  size_t unused = 0, total = 0;  // unused: by any process
  devices.check(devices.api().memory_info(device, &unused, &total), "asking for the memory of a device");
  const auto all = static_cast<int64_t>(total);
  Limit limit{all, fmt::format("the device has {}, of which {} are free", all, unused)};
  if (fraction > 0 && fraction < 1) {
    limit.bytes = static_cast<int64_t>(fraction * static_cast<double>(all));
    limit.says = fmt::format("FLAGS_fraction_of_gpu_memory_to_use allows {} of {}", limit.bytes, all);
  }
  if (const int64_t bytes = megabytes << 20; megabytes > 0 && bytes < limit.bytes) {
    limit = {bytes, fmt::format("FLAGS_gpu_memory_limit_mb allows {}", bytes)};
  }
  return limit;
}

}  // namespace anabranch::device
