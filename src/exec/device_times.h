// Device timestamps of nodes in a traced run: an event before and after each of them.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/event.h"
#include "exec/plan.h"
#include "exec/trace.h"

namespace anabranch {

// "CUDAPlace(0) compute": the name of a queue of the plan.
std::string name_of_queue(int queue_index);

class DeviceTimes {
 public:
  DeviceTimes(const Plan& plan, const device::Devices& devices);

  // Before the first node: reads the devices' clocks. Waits for the devices.
  void begin();
  void before(int node, ab_queue* queue);
  void after(int node, ab_queue* queue);
  // Waits for the launched work, and records its times on the host's clock.
  void add_to(Trace& trace) const;

 private:
  struct Span {
    device::Event begin, end;
    bool open = false, closed = false;  // in this run
  };
  uint64_t time_of(const device::Event& event) const;

  const Plan& plan_;
  const device::Devices& devices_;
  std::vector<std::optional<Span>> spans_;  // by node
  struct Clock {
    int device;
    device::Event event;
    int64_t to_host = 0;  // offset to add to a time of the device
  };
  std::vector<Clock> clocks_;  // of the devices that the plan uses
};

}  // namespace anabranch
