// Captures work enqueued on a device as a graph.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "device/devices.h"

namespace anabranch {

// `put` gets a separate queue, because others use the device's meanwhile; nothing runs. Null if the plug-in refuses the
// work, or `put` throws: *why has the reason.
std::shared_ptr<ab_graph> capture(const device::Devices& devices, int device,
                                  const std::function<void(ab_queue* queue)>& put, std::string* why);

}  // namespace anabranch
