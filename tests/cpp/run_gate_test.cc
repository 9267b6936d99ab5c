// The runs that wait at the gate of a scope, and which of them are woken.
#include "base/run_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace anabranch {
namespace {

constexpr auto kLongEnoughToSleep = std::chrono::milliseconds(50);

TEST(RunGate, AChangeThatSleepsIsWokenByTheLastRun) {
  RunGate gate;
  std::optional<RunGate::Run> one(std::in_place, gate);
  std::atomic<bool> changed{false};
  std::thread other([&] {  // another run, then a change
    { const RunGate::Run run(gate); }
    const RunGate::Change change(&gate);
    changed.store(true);
  });
  std::this_thread::sleep_for(kLongEnoughToSleep);
  EXPECT_FALSE(changed.load());
  one.reset();
  other.join();
  EXPECT_TRUE(changed.load());
}

TEST(RunGate, ARunThatSleepsIsWokenByTheEndOfTheChange) {
  RunGate gate;
  std::atomic<bool> ran{false};
  std::optional<RunGate::Change> change(std::in_place, &gate);
  std::thread other([&] {
    const RunGate::Run run(gate);
    ran.store(true);
  });
  std::this_thread::sleep_for(kLongEnoughToSleep);
  EXPECT_FALSE(ran.load());
  change.reset();
  other.join();
  EXPECT_TRUE(ran.load());
}

TEST(RunGate, AChangeFromInsideARunDoesNotWaitForIt) {
  RunGate gate;
  const RunGate::Run run(gate);
  EXPECT_TRUE(RunGate::inside_run());
  const RunGate::Change change(&gate);
  EXPECT_EQ(gate.try_begin_change(), RunGate::Begun::kInsideRun);
}

}  // namespace
}  // namespace anabranch
