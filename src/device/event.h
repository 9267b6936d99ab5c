// A point in a queue of a device, for as long as this object lives.
#pragma once
#include <cstdint>
#include <span>

#include "device/devices.h"
#include "device/lookout.h"

namespace anabranch::device {

class Event {
 public:
  Event(const Devices& devices, int device, bool timed = false);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&&) = delete;

  void record(ab_queue* queue) const {
    devices_->check(devices_->api().event_record(event_, queue), "recording an event");
  }
  // Work that is enqueued from here on follows the last record.
  void hold(ab_queue* queue) const {
    devices_->check(devices_->api().queue_wait(queue, event_), "waiting for an event");
  }
  // The calling thread waits. Unavailable after FLAGS_device_deadline.
  void wait() const;
  // Likewise, polling these; an exception of theirs ends the wait.
  void wait(std::span<Lookout* const> lookouts) const;
  bool passed() const;  // does not block; true if it was never recorded
  bool passes_within(int64_t ms) const;
  // Of a timed event that has passed: nanoseconds since an arbitrary origin of its device.
  uint64_t ns() const;

 private:
  const Devices* devices_;
  ab_event* event_ = nullptr;
};

}  // namespace anabranch::device
