// Time and chance of a simulation: events in the order of a clock that jumps from one to the next, all in one thread,
// all decided by a seed.
#pragma once
#include <functional>
#include <map>
#include <random>

#include "rpc/clock.h"
#include "rpc/timer.h"

namespace anabranch::ps::sim {

using namespace rpc;

class World final : public Clock, public Timer {
 public:
  explicit World(uint64_t seed) : rng_(seed) {}

  TimePoint now() const override { return TimePoint(std::chrono::hours(1)) + now_; }
  void after(Milliseconds delay, std::function<void()> what) override {
    events_.emplace(std::pair(now_ + delay, number_++), std::move(what));
  }
  // Whole milliseconds in [low, high].
  Milliseconds within(int low, int high) { return Milliseconds(pick(low, high)); }
  int pick(int low, int high) { return low + static_cast<int>(rng_() % static_cast<uint64_t>(high - low + 1)); }
  bool chance(int percent) { return pick(0, 99) < percent; }
  uint64_t draw() { return rng_(); }
  void jump(Milliseconds by) { now_ += by; }
  Milliseconds elapsed() const { return now_; }

  // Until `over`, or until nothing happens any more, or longer than `limit`: false then.
  bool run(const std::function<bool()>& over, Milliseconds limit) {
    while (!over()) {
      if (now_ > limit || !run_next()) return false;
    }
    return true;
  }
  // The next event, also within another one. False: there is none.
  bool run_next() {
    if (events_.empty()) return false;
    const auto next = events_.begin();
    now_ = std::max(now_, next->first.first);
    const auto what = std::move(next->second);
    events_.erase(next);
    what();
    return true;
  }

 private:
  std::mt19937_64 rng_;
  Milliseconds now_{0};
  uint64_t number_ = 0;
  std::map<std::pair<Milliseconds, uint64_t>, std::function<void()>> events_;
};

}  // namespace anabranch::ps::sim
