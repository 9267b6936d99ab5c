// Collective nodes on a device: they agree with the other processes on the host, then the devices compute. Dense
// tensors only.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/device_ring.h"
#include "opdef/meeting_context.h"
#include "opdef/op_def.h"

namespace anabranch::distributed {

// Index among the communicators of a ring; set by place_on_devices.
void communicator_attr(OpDef& def);

// All groups of one node, which are of one kind: one call per X and Out, in one exchange.
class OnDevices {
 public:
  struct Kind {
    int ring = 0;
    comm::CollectiveKind verb = comm::CollectiveKind::kAllReduce;
    comm::Combine how = comm::Combine::kSum;
    int root = 0;
    int ranks = 0;  // number of ranks that the op declares; 0: undeclared
  };
  OnDevices(const KernelArgs& op, const Kind& kind);
  void run(KernelContext& c);

 private:
  comm::What about(const KernelContext& c) const;
  void call(const KernelContext& c, int i, device::Communicator::Call* call) const;

  const In x_;
  const Out out_;
  const Kind kind_;
  const std::string name_;
  const bool waits_;
  const std::shared_ptr<comm::DeviceRing> ring_;
  std::vector<device::Communicator::Call> calls_;  // kept from step to step
};

Kernel on_devices(const KernelArgs& op, const OnDevices::Kind& kind);
// InvalidArgument if the group does not match the attributes of the op.
void check_ranks(int nranks, const comm::Group& group);
void check_root(int root, const comm::Group& group);

}  // namespace anabranch::distributed
