#include "exec/thread_trial.h"

#include <algorithm>
#include <exception>
#include <limits>

#include "base/flags.h"

namespace anabranch {
namespace {

constexpr int64_t kTooLittle = 1 << 12;  // elements: waking another thread costs more than all of the work
constexpr int kLaps = 9;                 // the first one touches memory for the first time; then four of each
constexpr int64_t kFirstPause = 1 << 8, kLongestPause = 1 << 16;

}  // namespace

void ThreadTrial::set_work(int64_t elems) {
  if (work_ >= 0 && elems <= 2 * work_ && 2 * elems >= work_) return;
  work_ = elems;
  pause_ = kFirstPause;
  begin();
}

void ThreadTrial::begin() {
  laps_ = 0;
  decided_ = false;
  best_ns_[0] = best_ns_[1] = std::numeric_limits<int64_t>::max();
}

bool ThreadTrial::choose(bool asked) {
  if (!Flags::measure_threads()) return asked;
  if (work_ < kTooLittle) return threaded_ = false;
  if (decided_ && --runs_left_ <= 0) {
    pause_ = std::min(4 * pause_, kLongestPause);
    begin();
  }
  return threaded_ = decided_ ? winner_ : laps_ % 2 == 0 && laps_ > 0;
}

void ThreadTrial::record(int64_t ns) {
  if (laps_ > 0) best_ns_[threaded_] = std::min(best_ns_[threaded_], ns);
  if (++laps_ < kLaps) return;
  decided_ = true;
  winner_ = best_ns_[1] < best_ns_[0];
  runs_left_ = pause_;
}

ThreadTrial::Lap::Lap(ThreadTrial& trial, bool counts)
    : trial_(trial),
      counts_(counts && !trial.decided_ && trial.work_ >= kTooLittle),
      exceptions_(counts_ ? std::uncaught_exceptions() : 0) {
  if (counts_) begin_ = std::chrono::steady_clock::now();
}

ThreadTrial::Lap::~Lap() {
  if (!counts_ || std::uncaught_exceptions() > exceptions_) return;
  const auto lap = std::chrono::steady_clock::now() - begin_;
  trial_.record(std::chrono::duration_cast<std::chrono::nanoseconds>(lap).count());
}

}  // namespace anabranch
