#include "base/event_time.h"

#include <atomic>
#include <ctime>

namespace anabranch {
namespace {

constexpr int64_t kWallClock = -1;

std::atomic<int64_t> given{kWallClock};
thread_local std::optional<uint32_t> of_message;

}  // namespace

uint32_t event_time() {
  if (of_message) return *of_message;
  const int64_t seconds = given.load(std::memory_order_relaxed);
  return static_cast<uint32_t>(seconds == kWallClock ? std::time(nullptr) : seconds);
}

void set_event_time(std::optional<uint32_t> seconds) { given = seconds ? int64_t{*seconds} : kWallClock; }

EventTime::EventTime(uint32_t seconds) : outer_(of_message) { of_message = seconds; }

EventTime::~EventTime() { of_message = outer_; }

}  // namespace anabranch
