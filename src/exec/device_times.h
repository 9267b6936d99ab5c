// When nodes were at work on their devices, of a run that is traced: an event before and behind each of them.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/event.h"
#include "exec/plan.h"
#include "exec/trace.h"

namespace anabranch {

// "CUDAPlace(0) compute": the queue that a lane of a plan is.
std::string name_of_lane(int lane);

class DeviceTimes {
 public:
  DeviceTimes(const Plan& plan, const device::Devices& devices);

  // Before the first node: finds what the devices' clocks say now. Waits for the devices.
  void begin();
  void before(int node, ab_queue* queue);
  void behind(int node, ab_queue* queue);
  // Waits for what was launched, and adds it, in the time of the host.
  void add_to(Trace& trace) const;

 private:
  struct Span {
    device::Event begin, end;
    bool open = false, closed = false;  // of this run
  };
  uint64_t time_of(const device::Event& event) const;

  const Plan& plan_;
  const device::Devices& devices_;
  std::vector<std::optional<Span>> spans_;  // by node
  struct Clock {
    int device;
    device::Event event;
    int64_t to_host = 0;  // what to add to a time of the device
  };
  std::vector<Clock> clocks_;  // of the devices that the plan uses
};

}  // namespace anabranch
