// A job that its caller waits for: the meeting before a node of a device is enqueued. Part of a node, kept from step to
// step. The group's thread never owns it, so that it never destroys its own group.
#pragma once
#include <atomic>
#include <memory>

#include "comm/group.h"

namespace anabranch::comm {

class WaitedJob : public Job, public std::enable_shared_from_this<WaitedJob> {
 public:
  // Returns when work() has; rethrows its exception. Each meeting has the group's deadline.
  void run(Group& group);
  void ended(std::exception_ptr error) noexcept final;

 private:
  std::atomic<uint32_t> under_way_{0};
  std::exception_ptr error_;
};

}  // namespace anabranch::comm
