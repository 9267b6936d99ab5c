#include "device/settle.h"

#include <exception>

#include "device/event.h"

namespace anabranch::device {

void settle(const Devices& devices, int device, std::span<Lookout* const> lookouts) noexcept {
  try {
    for (const QueueKind kind : {QueueKind::kCompute, QueueKind::kUp, QueueKind::kDown}) {
      const Event passed(devices, device);
      passed.record(devices.queue(device, kind));
      passed.wait(lookouts);
    }
  } catch (const std::exception&) {  // reported to the next caller that runs something there
    for (Lookout* lookout : lookouts) lookout->give_up();
    if (!lookouts.empty()) settle(devices, device);
  }
}

}  // namespace anabranch::device
