// What a run has put into queues may end only when others do their part: whoever waits for it looks whether they still
// can.
#pragma once

namespace anabranch::device {

class Lookout {
 public:
  virtual ~Lookout() = default;
  // Throws when it can end no more, and has ended it by then: queues go on, with any values.
  virtual void look() = 0;
  virtual void give_up() noexcept = 0;  // ends it
};

}  // namespace anabranch::device
