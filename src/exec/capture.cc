#include "exec/capture.h"

#include <map>
#include <mutex>

#include "base/error.h"
#include "device/settle.h"

namespace anabranch {
namespace {

// Captures are rare: one at a time.
struct CaptureQueues {
  std::mutex mutex;
  std::map<int, ab_queue*> of_device;
};
CaptureQueues& capture_queues() {
  static auto& all = *new CaptureQueues();  // never destroyed, like the devices
  return all;
}

void free_graph(const device::Devices& devices, int device, ab_graph* graph) {
  device::settle(devices, device);  // a queue may still run it
  devices.api().graph_free(graph);
}

}  // namespace

std::shared_ptr<ab_graph> capture(const device::Devices& devices, int device,
                                  const std::function<void(ab_queue* queue)>& put, std::string* why) {
  const ab_device_api& api = devices.api();
  auto& [mutex, of_device] = capture_queues();
  const std::lock_guard lock(mutex);
  ab_queue*& queue = of_device[device];
  if (!queue) devices.check(api.queue_new(device, 0, "capture", &queue), "making a queue");
  devices.check(api.capture_begin(queue), "capturing a graph");
  ab_graph* made = nullptr;
  bool open = true;
  try {
    put(queue);
    open = false;
    devices.check(api.capture_end(queue, &made), "capturing a graph");
  } catch (const std::exception& e) {
    if (open && api.capture_end(queue, &made) == AB_OK) api.graph_free(made);
    const auto* error = dynamic_cast<const Error*>(&e);
    *why = error ? error->message() : e.what();
    return nullptr;
  }
  return {made, [&devices, device](ab_graph* graph) { free_graph(devices, device, graph); }};
}

}  // namespace anabranch
