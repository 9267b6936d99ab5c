// What a run has put into queues may end only when others do their part: whoever waits for it looks whether they still
// can.
#pragma once

namespace anabranch::device {

class Lookout {
 public:
  virtual ~Lookout() = default;
  virtual void look() = 0;  // throws when it can end no more
  // Ends it: queues go on, with any values. Whoever gives a run up does so before it waits for queues (settle.h).
  virtual void give_up() noexcept = 0;
};

}  // namespace anabranch::device
