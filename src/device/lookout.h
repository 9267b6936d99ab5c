// Work in queues may depend on other processes. A thread that waits for such work polls whether they are still alive.
#pragma once

namespace anabranch::device {

class Lookout {
 public:
  virtual ~Lookout() = default;
  virtual void look() = 0;  // throws if it can no longer end
  // Aborts it: queues go on, with undefined values. To give up a run, abort before waiting for queues (settle.h).
  virtual void give_up() noexcept = 0;
};

}  // namespace anabranch::device
