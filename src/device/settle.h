// Waits where something ends, which no error may leave.
#pragma once
#include <span>

#include "device/devices.h"
#include "device/lookout.h"

namespace anabranch::device {

// Nothing of what was put into the device's queues is under way any more: it has run, or the devices are lost.
// `lookouts`: of what may end only when others do their part; it is given up where that fails.
void settle(const Devices& devices, int device, std::span<Lookout* const> lookouts = {}) noexcept;

}  // namespace anabranch::device
