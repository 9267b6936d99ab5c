// The report on a step that takes long, and when it comes.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <thread>

#include "exec/run.h"

namespace anabranch {
namespace {

// A step that takes long says which node it is in and what the other threads wait for.
TEST(Stalls, OfThreadedRunsAreReportedWithTheNode) {
  std::deque<Value> values(2);
  std::vector<NodeSpec> specs(2);
  specs[0].writes = {0};
  specs[0].kernel = [](KernelContext&) { std::this_thread::sleep_for(std::chrono::milliseconds(2500)); };
  specs[1].reads = {0};
  specs[1].writes = {1};
  specs[1].kernel = [](KernelContext&) {};
  Plan plan(std::move(specs));
  RunState state(plan);
  const std::function<std::string(int)> describe = [](int node) { return node == 0 ? "the slow node" : "the next"; };
  RunOptions options;
  options.describe = &describe;
  options.stall_report_s = 0.5;
  testing::internal::CaptureStderr();
  run_threaded(plan, state, ThreadPool::of_size(2), options);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("the slow node"), std::string::npos) << text;
  EXPECT_NE(text.find("waiting for a node to become ready"), std::string::npos) << text;
}

// With one thread no other thread waits for the node: the watchdog does.
TEST(Stalls, OfSequentialRunsAreReported) {
  std::vector<NodeSpec> specs(2);
  specs[0].kernel = [](KernelContext&) {};
  specs[1].kernel = [](KernelContext&) { std::this_thread::sleep_for(std::chrono::milliseconds(3500)); };
  Plan plan(std::move(specs));
  RunState state(plan);
  state.watch_for_stalls([](int node) { return node == 1 ? "the slow node" : "the first"; });
  RunOptions options;
  options.stall_report_s = 0.5;
  testing::internal::CaptureStderr();
  run_sequential(plan, state, options);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("with 1 of 2 nodes left\n  the slow node"), std::string::npos) << text;
  EXPECT_EQ(text.find("the first"), std::string::npos) << text;
}

std::vector<NodeSpec> slow(int ms) {
  std::vector<NodeSpec> specs(2);
  specs[0].writes = {0};
  specs[0].kernel = [ms](KernelContext&) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); };
  specs[1].reads = {0};
  specs[1].kernel = [](KernelContext&) {};
  return specs;
}

// Of steps that last for longer than anybody looks away, but not for as long as is to be reported; of short ones, one
// after the other; of one that has no node.
TEST(Stalls, NothingIsSaidBeforeItsTime) {
  Plan once(slow(2200)), often(slow(700)), empty({});
  RunState threaded(once), sequential(once), repeated(often), idle(empty);
  const std::function<std::string(int)> describe = [](int) { return "a node"; };
  for (RunState* state : {&sequential, &repeated, &idle}) state->watch_for_stalls(describe);
  RunOptions options, sooner;
  options.describe = &describe;
  options.stall_report_s = 100;
  sooner.stall_report_s = 1.5;
  testing::internal::CaptureStderr();
  idle.begin_sequential(sooner);
  std::thread other([&] { run_sequential(once, sequential, options); });
  std::thread third([&] {
    for (int i = 0; i < 5; ++i) run_sequential(often, repeated, sooner);
  });
  run_threaded(once, threaded, ThreadPool::of_size(2), options);
  other.join();
  third.join();
  idle.end_sequential(false);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace anabranch
