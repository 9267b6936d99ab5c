// A job that the thread which begins it waits for: the meeting before a node of a device goes into its queue. Memory
// of a node that stays from step to step. The group's thread never keeps it, so that it never ends its own group.
#pragma once
#include <atomic>
#include <memory>

#include "comm/group.h"

namespace anabranch::comm {

class WaitedJob : public Job, public std::enable_shared_from_this<WaitedJob> {
 public:
  // Returns when work() has; throws what it has thrown. The others have the group's deadline for each meeting.
  void run(Group& group);
  void ended(std::exception_ptr error) noexcept final;

 private:
  std::atomic<uint32_t> under_way_{0};
  std::exception_ptr error_;
};

}  // namespace anabranch::comm
