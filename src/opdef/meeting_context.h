// The context of a device kernel that computes together with other processes.
#pragma once
#include <vector>

#include "device/lookout.h"
#include "opdef/device_context.h"

namespace anabranch {

class MeetingContext final : public DeviceContext {
 public:
  using Lookouts = std::vector<device::Lookout*>;
  MeetingContext(const DeviceContext& of_node, Lookouts* lookouts) : DeviceContext(of_node), lookouts_(*lookouts) {}
  // Internal if the node has no queue.
  static const MeetingContext& of(const KernelContext& c) {
    return static_cast<const MeetingContext&>(DeviceContext::of(c));
  }
  // The launched work depends on other processes: the run polls this at each wait until it ends.
  void look_at(device::Lookout& lookout) const { lookouts_.push_back(&lookout); }

 private:
  Lookouts& lookouts_;
};

}  // namespace anabranch
