// Collectives over the devices of a plan: translates the arguments of a node to calls of a communicator.
#pragma once
#include <memory>
#include <vector>

#include "device/communicator.h"
#include "opdef/device_context.h"
#include "opdef/op_def.h"

namespace anabranch::collective {

// One gradient: `in` from every active replica, `out` on every replica that needs the sum. Outputs may be inputs.
struct GradientSlots {
  In in;
  Out out;
};

// Attributes that the pass place_on_devices sets.
void over_devices_attrs(OpDef& def);

// State of one node: `groups` calls at once, one for each group of arguments.
class OverDevices {
 public:
  explicit OverDevices(const KernelArgs& op);
  // Out = the sum of X, on one device or on all.
  void sum(const DeviceContext& c);
  // Out = X, which is one of them, on all devices.
  void broadcast(const DeviceContext& c);

 private:
  GradientSlots group(int k) const;
  int rank_of(const Tensor& t) const;
  void run(const DeviceContext& c);

  const In x_;
  const Out out_;
  const int groups_, number_;
  const bool waits_;
  std::vector<int> devices_;
  std::vector<device::Communicator::Call> calls_;  // kept from step to step
  std::shared_ptr<device::Communicator> communicator_;
};

}  // namespace anabranch::collective
