#include "device/event.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/flags.h"

namespace anabranch::device {
namespace {

constexpr int64_t kLookMs = 5;

}  // namespace

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

void Event::wait(std::span<Lookout* const> lookouts) const {
  using std::chrono::steady_clock, std::chrono::milliseconds;
  if (lookouts.empty()) return wait();
  const int64_t deadline = std::min(Flags::device_deadline(), int64_t{1} << 40);
  const auto end = steady_clock::now() + milliseconds(deadline);
  while (true) {
    const int status = devices_->api().event_wait(event_, kLookMs);
    if (status != AB_TIMED_OUT) return devices_->check(status, "waiting for the device");
    for (Lookout* lookout : lookouts) lookout->look();
    if (deadline < 0 || steady_clock::now() < end) continue;
    for (Lookout* lookout : lookouts) lookout->give_up();
    AB_THROW(Unavailable, "{}: waiting for the device and other processes: not passed within {} ms",
             devices_->api().name, deadline);
  }
}

bool Event::passes_within(int64_t ms) const {
  const int status = devices_->api().event_wait(event_, ms);
  if (status == AB_TIMED_OUT) return false;
  devices_->check(status, "waiting for the device");
  return true;
}

bool Event::passed() const {
  int passed = 0;
  devices_->check(devices_->api().event_query(event_, &passed, nullptr), "asking for an event");
  return passed != 0;
}

uint64_t Event::ns() const {
  int passed = 0;
  uint64_t ns = 0;
  devices_->check(devices_->api().event_query(event_, &passed, &ns), "asking when an event was");
  return ns;
}

}  // namespace anabranch::device
