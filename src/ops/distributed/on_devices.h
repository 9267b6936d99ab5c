// Nodes that compute together with other processes and lie on a device: they agree with the others on the host, then
// the devices do it. Dense tensors alone.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/device_ring.h"
#include "opdef/meeting_context.h"
#include "opdef/op_def.h"

namespace anabranch::distributed {

// Which of the communicators of a ring; place_on_devices sets it.
void communicator_attr(OpDef& def);

// Of the groups of one node, all of one kind: one call for each X with its Out, and one meeting.
class OnDevices {
 public:
  struct Kind {
    int ring = 0;
    comm::Verb verb = comm::Verb::kAllReduce;
    comm::Combine how = comm::Combine::kSum;
    int root = 0;
    int ranks = 0;  // that the op says there are; 0: it does not
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
  std::vector<device::Communicator::Call> calls_;  // memory that stays from step to step
};

Kernel on_devices(const KernelArgs& op, const OnDevices::Kind& kind);
// InvalidArgument where the group is not as the op says.
void check_ranks(int nranks, const comm::Group& group);
void check_root(int root, const comm::Group& group);

}  // namespace anabranch::distributed
