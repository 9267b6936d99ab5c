// The time of the events that are trained: that of the wall clock, unless a program that trains on older events says
// otherwise. Seconds since 1970. Any thread.
#pragma once
#include <cstdint>
#include <optional>

namespace anabranch {

// Within an EventTime of this thread its time.
uint32_t event_time();
// From now on, in all threads; none: the wall clock again.
void set_event_time(std::optional<uint32_t> seconds);

// The work of this thread was caused by a message with this time; 0: of an unknown time, which changes nothing.
class EventTime {
 public:
  explicit EventTime(uint32_t seconds);
  ~EventTime();
  EventTime(const EventTime&) = delete;

 private:
  const std::optional<uint32_t> outer_;
};

}  // namespace anabranch
