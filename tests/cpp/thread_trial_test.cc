// One thread or many: the choice of a trial in each run, what decides it, and when it is held again; and the wait
// with a limit that sleeping threads are made of.
#include "exec/thread_trial.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/flags.h"
#include "base/futex.h"
#include "base/thread_pool.h"

namespace anabranch {
namespace {

using std::chrono::milliseconds;

// One run, which takes longer on many threads than on one or the other way round: 't' when it was threaded.
char run(ThreadTrial& trial, bool threads_are_slow, bool counts = true) {
  const bool threaded = trial.choose(true);
  const ThreadTrial::Lap lap(trial, counts);
  if (threaded == threads_are_slow) std::this_thread::sleep_for(milliseconds(3));
  return threaded ? 't' : 's';
}

std::string runs(ThreadTrial& trial, int n, bool threads_are_slow) {
  std::string ways;
  for (int i = 0; i < n; ++i) ways += run(trial, threads_are_slow);
  return ways;
}

std::string quick_runs(ThreadTrial& trial, int n) {
  std::string ways;
  for (int i = 0; i < n; ++i) {
    ways += trial.choose(true) ? 't' : 's';
    const ThreadTrial::Lap lap(trial, true);
  }
  return ways;
}

class ThreadTrials : public testing::Test {
 protected:
  void SetUp() override { set_flag("FLAGS_measure_threads", true); }
  void TearDown() override { set_flag("FLAGS_measure_threads", before_); }

 private:
  const bool before_ = Flags::measure_threads();
};

TEST_F(ThreadTrials, TheFasterWayStaysUntilTheNextTrial) {
  for (const bool slow : {true, false}) {
    ThreadTrial trial;
    trial.set_work(10000);
    // The first run is the one that touches memory for the first time; then four of each.
    ASSERT_EQ(runs(trial, 9, slow), "sstststst");
    EXPECT_EQ(runs(trial, 3, slow), slow ? "sss" : "ttt");
    EXPECT_EQ(quick_runs(trial, 252), std::string(252, slow ? 's' : 't'));
    ASSERT_EQ(runs(trial, 9, !slow), "sstststst") << "after 255 runs it is asked again";
    EXPECT_EQ(runs(trial, 3, !slow), slow ? "ttt" : "sss");
    EXPECT_EQ(quick_runs(trial, 1020), std::string(1020, slow ? 't' : 's')) << "after four times the runs";
    EXPECT_EQ(quick_runs(trial, 4), "ssts");
  }
}

TEST_F(ThreadTrials, OtherWorkIsAnotherTrial) {
  ThreadTrial trial;
  trial.set_work(10000);
  ASSERT_EQ(runs(trial, 12, false),
            "sstststst"
            "ttt");
  trial.set_work(20000);
  trial.set_work(5000);
  EXPECT_EQ(runs(trial, 2, false), "tt") << "as much as twice or half of it is the same work";
  trial.set_work(20001);
  EXPECT_EQ(runs(trial, 9, true), "sstststst");
  EXPECT_EQ(runs(trial, 2, true), "ss");
  trial.set_work(10000);
  EXPECT_EQ(runs(trial, 9, false), "sstststst");
}

TEST_F(ThreadTrials, LittleWorkStaysOnOneThread) {
  ThreadTrial trial;
  trial.set_work(4095);
  EXPECT_EQ(quick_runs(trial, 30), std::string(30, 's'));
  trial.set_work(4096 * 4);
  EXPECT_EQ(quick_runs(trial, 4), "ssts");
}

TEST_F(ThreadTrials, RunsThatDoNotCountLeaveTheTrialWhereItWas) {
  ThreadTrial trial;
  trial.set_work(10000);
  ASSERT_EQ(runs(trial, 2, true), "ss");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(run(trial, false, false), 't');
  for (int i = 0; i < 5; ++i) {
    try {
      EXPECT_TRUE(trial.choose(true));
      const ThreadTrial::Lap lap(trial, true);
      throw std::runtime_error("a node failed");
    } catch (const std::runtime_error&) {
    }
  }
  EXPECT_EQ(runs(trial, 7, true), "tststst");
  EXPECT_EQ(runs(trial, 2, true), "ss");
}

TEST_F(ThreadTrials, WithoutMeasuringTheNumberOfTheUserIsUsed) {
  set_flag("FLAGS_measure_threads", false);
  ThreadTrial trial;
  trial.set_work(1);
  EXPECT_TRUE(trial.choose(true));
  EXPECT_FALSE(trial.choose(false));
}

TEST(Futex, WaitsAsLongAsItSays) {
  std::atomic<uint32_t> word{7};
  for (const int64_t ms : {0, 5, 40, 1005}) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_FALSE(futex_wait(word, 7, ms));
    const auto lasted = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(lasted, milliseconds(ms));
    EXPECT_LT(lasted, milliseconds(ms + 2000));
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(futex_wait(word, 8, 5000)) << "the word is another one";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(2000));
}

TEST(Futex, IsWoken) {
  std::atomic<uint32_t> word{0};
  std::thread waker([&] {
    std::this_thread::sleep_for(milliseconds(20));
    word = 1;
    futex_wake_all(word);
  });
  while (word == 0) EXPECT_TRUE(futex_wait(word, 0, -1));
  waker.join();
}

TEST(ThreadPool, HasBetweenOneAndTheMostWorkers) {
  EXPECT_GE(ThreadPool::of_size(0).workers(), 1);
  EXPECT_EQ(ThreadPool::of_size(3).workers(), 3);
  EXPECT_EQ(&ThreadPool::of_size(3), &ThreadPool::of_size(3));
  EXPECT_NE(&ThreadPool::of_size(3), &ThreadPool::of_size(2));
  EXPECT_THROW(ThreadPool::of_size(ThreadPool::kMaxWorkers + 1), Error);
}

}  // namespace
}  // namespace anabranch
