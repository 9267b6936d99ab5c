#include "exec/stall_watch.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/counted.h"
#include "base/fork.h"

namespace anabranch {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPeriod = std::chrono::seconds(1);

}  // namespace

struct StallWatch::Seen {
  uint32_t run = 0;  // in progress at the last check
  Clock::time_point since;
  int reports = 0;
};

struct StallWatch::Watch {
  std::mutex mutex;
  std::map<RunState*, Seen> states;
  bool started = false;
};

StallWatch::Watch& StallWatch::watch() {
  static auto& made = *new Watch();  // never destroyed: the thread runs until the process exits
  [[maybe_unused]] static const bool hooked = [] {
    const auto unlock = [] { made.mutex.unlock(); };
    at_fork(ForkStage::kWatch, {[] { made.mutex.lock(); }, unlock,
                                [] {
                                  made.started = false;  // the thread exists in the parent only
                                  made.mutex.unlock();
                                }});
    return true;
  }();
  return made;
}

void StallWatch::add(RunState* state) {
  Watch& w = watch();
  const std::lock_guard lock(w.mutex);
  w.states[state] = {};
  if (w.started) return;
  try {
    std::thread(look).detach();
    w.started = true;
  } catch (const std::system_error&) {  // no thread is available: work goes on without reports
  }
}

void StallWatch::remove(RunState* state) {
  const std::lock_guard lock(watch().mutex);
  watch().states.erase(state);
}

void StallWatch::look() {
  while (true) {
    std::this_thread::sleep_for(kPeriod);
    const std::lock_guard lock(watch().mutex);
    for (auto& [state, seen] : watch().states) look_at(*state, seen);
  }
}

void StallWatch::look_at(RunState& state, Seen& seen) {
  const uint32_t run = state.sequential_runs_.load(std::memory_order_acquire);
  if (run != seen.run) seen = {run, Clock::now(), 0};
  if (run % 2 == 0) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - seen.since).count();
  const double limit = state.report_s_.load(std::memory_order_relaxed);
  if (limit <= 0 || seconds < limit * (seen.reports + 1)) return;
  ++seen.reports;
  report(state, seconds);
}

void StallWatch::report(const RunState& state, double seconds) {
  const int at = state.at_.load(std::memory_order_relaxed);
  if (at >= state.size_) return;
  std::string text = fmt::format("anabranch: this step has run for {:.1f} s, with {} of {} left\n  {}\n", seconds,
                                 state.size_ - at, counted(state.size_, "node"), state.describe_(at));
  for (int i = 0; state.later_ && i < state.size_; ++i) {
    if (state.later_->open(i)) text += fmt::format("  started, not finished: {}\n", state.describe_(i));
  }
  std::fputs(text.c_str(), stderr);
}

}  // namespace anabranch
