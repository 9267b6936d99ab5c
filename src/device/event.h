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
  // What is put into the queue from here on comes after the last record.
  void hold(ab_queue* queue) const {
    devices_->check(devices_->api().queue_wait(queue, event_), "waiting for an event");
  }
  // The calling thread waits. Unavailable after FLAGS_device_deadline.
  void wait() const;
  // Likewise, and looks at these again and again; what they throw ends the wait.
  void wait(std::span<Lookout* const> lookouts) const;
  bool passed() const;  // at once; also where it was never recorded
  bool passes_within(int64_t ms) const;
  // Of a timed one that has passed: nanoseconds since some moment of its device.
  uint64_t ns() const;

 private:
  const Devices* devices_;
  ab_event* event_ = nullptr;
};

}  // namespace anabranch::device
