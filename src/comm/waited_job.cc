#include "comm/waited_job.h"

#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/flags.h"
#include "base/futex.h"

namespace anabranch::comm {

void WaitedJob::run(Group& group) {
  AB_CHECK(under_way_.load(std::memory_order_acquire) == 0, Unavailable,
           "rank {} of {} still waits in a collective that an earlier run abandoned", group.rank(), group.size());
  error_ = nullptr;
  under_way_.store(1, std::memory_order_relaxed);
  try {
    group.begin(*this);
  } catch (...) {
    under_way_.store(0, std::memory_order_relaxed);
    throw;
  }
  // Meetings have a deadline; work between them, such as joining devices, may have none.
  constexpr int64_t kMeetings = 8, kLookMs = 1000;
  const int64_t most =
      Flags::device_deadline() < 0 ? -1 : Flags::device_deadline() + kMeetings * group.deadline().count();
  const auto begun = std::chrono::steady_clock::now();
  while (under_way_.load(std::memory_order_acquire) != 0) {
    futex_wait(under_way_, 1, kLookMs);
    if (most < 0 || std::chrono::steady_clock::now() - begun < Milliseconds(most)) continue;
    new std::shared_ptr<WaitedJob>(shared_from_this());  // leaked: the group's thread is inside for an unknown time
    AB_THROW(Unavailable,
             "rank {} of {} has waited for the others for more than {} ms (FLAGS_device_deadline, "
             "FLAGS_collective_deadline)",
             group.rank(), group.size(), most);
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void WaitedJob::ended(std::exception_ptr error) noexcept {
  error_ = std::move(error);
  under_way_.store(0, std::memory_order_release);
  futex_wake_all(under_way_);  // only the address is used: the waiter may have returned already
}

}  // namespace anabranch::comm
