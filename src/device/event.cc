#include "device/event.h"

#include <utility>

#include "base/flags.h"

namespace anabranch::device {

Event::Event(const Devices& devices, int device, bool timed) : devices_(&devices) {
  devices.check(devices.api().event_new(device, timed, &event_), "making an event");
}

Event::Event(Event&& other) noexcept : devices_(other.devices_), event_(std::exchange(other.event_, nullptr)) {}

Event::~Event() {
  if (event_) devices_->api().event_free(event_);
}

void Event::wait() const {
  devices_->check(devices_->api().event_wait(event_, Flags::device_deadline()), "waiting for the device");
}

uint64_t Event::ns() const {
  int passed = 0;
  uint64_t ns = 0;
  devices_->check(devices_->api().event_query(event_, &passed, &ns), "asking when an event was");
  return ns;
}

}  // namespace anabranch::device
