// Time as a dependency, so that tests and simulations control it.
#pragma once
#include <chrono>

namespace anabranch::rpc {

using TimePoint = std::chrono::steady_clock::time_point;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

class SteadyClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
  static const SteadyClock& shared() {
    static const SteadyClock clock;
    return clock;
  }
};

}  // namespace anabranch::rpc
