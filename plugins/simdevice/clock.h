// A vector clock: for each queue the number of the last item that is known to have ended.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace anabranch::simdevice {

class Clock {
 public:
  uint64_t of(int queue) const {
    const auto at = static_cast<size_t>(queue);
    return at < ticks_.size() ? ticks_[at] : 0;
  }
  void set(int queue, uint64_t tick) {
    const auto at = static_cast<size_t>(queue);
    if (at >= ticks_.size()) ticks_.resize(at + 1);
    ticks_[at] = tick;
  }
  uint64_t advance(int queue) {
    const uint64_t tick = of(queue) + 1;
    set(queue, tick);
    return tick;
  }
  void join(const Clock& other) {
    if (other.ticks_.size() > ticks_.size()) ticks_.resize(other.ticks_.size());
    for (size_t i = 0; i < other.ticks_.size(); ++i) ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
  }

 private:
  std::vector<uint64_t> ticks_;
};

}  // namespace anabranch::simdevice
