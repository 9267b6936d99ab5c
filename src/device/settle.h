// Waits where something ends, which no error may leave.
#pragma once
#include "device/devices.h"

namespace anabranch::device {

// Nothing of what was put into the device's queues is under way any more: it has run, or the devices are lost.
void settle(const Devices& devices, int device) noexcept;

}  // namespace anabranch::device
