// Another process, and whether it has ended. It is identified by a pidfd, or, if the kernel has none, by its process id
// and start time, so that a later process with the same id is not mistaken for it.
#pragma once
#include <cstdint>

#include "descriptor.h"

namespace anabranch::simdevice {

uint64_t start_of(int64_t process);  // in ticks since the machine was started; 0: there is no such process

class Peer {
 public:
  Peer() = default;
  Peer(int64_t process, uint64_t start, bool by_descriptor = true);
  int64_t process() const { return process_; }  // 0: none
  bool ended() const;                           // one call of the system or two, no wait

 private:
  int64_t process_ = 0;
  uint64_t start_ = 0;
  bool gone_ = false;
  Descriptor descriptor_;
};

}  // namespace anabranch::simdevice
