// Captures what some code puts into a queue of a device as a graph.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "device/devices.h"

namespace anabranch {

// `put` is given a queue of its own, for others use the device's meanwhile; nothing of it runs. Null when the plug-in
// refuses what is put there, or `put` throws: *why says so.
std::shared_ptr<ab_graph> capture(const device::Devices& devices, int device,
                                  const std::function<void(ab_queue* queue)>& put, std::string* why);

}  // namespace anabranch
