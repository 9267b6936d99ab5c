// The status of a run in the memory of its device: values that change from run to run while the launches stay the same,
// and faults that kernels report. Written before the first node and read after the last one, in the queue of the
// kernels.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "device/devices.h"
#include "opdef/op_def.h"

namespace anabranch {

class DeviceStatus {
 public:
  explicit DeviceStatus(int device);
  // Enqueues the number of the run's step, and a cleared fault.
  void begin(const device::Devices& devices, ab_queue* queue, uint32_t step);
  // Enqueues the copy of the fault to the host. After the queue has passed, fault() returns it; kNoFault: none.
  void end(const device::Devices& devices, ab_queue* queue);
  uint64_t fault() const { return *static_cast<const uint64_t*>(down_.get()); }

  void* fault_status() const { return there_.get(); }
  const void* step_status() const { return static_cast<const char*>(there_.get()) + sizeof(uint64_t); }
  static constexpr uint64_t kNoFault = ~uint64_t{0};  // as in ops/device/element.h

 private:
  struct Status {
    uint64_t fault;
    uint32_t step, unused;
  };
  const int device_;
  std::shared_ptr<void> there_, up_, down_;
};

// The meaning of fault number `code` of a kernel: .with(device_fault(1, "...")). "{}" stands for its detail, "<Ids>"
// for the variables in the op's input Ids.
std::function<void(OpDef&)> device_fault(int code, std::string text);
// Whether kernels of the op report faults.
bool reports_faults(const std::string& type);
// "integer division by zero at element 7"
std::string fault_text(const std::string& type, int code, int64_t detail);
std::string fault_text(const ir::Op& op, int code, int64_t detail);

}  // namespace anabranch
