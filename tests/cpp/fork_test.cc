// The copies of thread pools in the child of a fork.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include "base/run_gate.h"
#include "base/thread_pool.h"

namespace anabranch {
namespace {

// Whether a child that does this ends by itself.
template <class Fn> bool child_ends(Fn&& does) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    does();
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int64_t added_up(ThreadPool& pool) {
  std::atomic<int64_t> sum{0};
  parallel_for(&pool, 64, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum += i;
  });
  return sum;
}

class Fork : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer lets no child of a fork start threads";
#endif
  }
};

TEST_F(Fork, TheChildNeedNotWaitForThreadsThatItDoesNotHave) {
  auto pool = std::make_unique<ThreadPool>(3);
  EXPECT_EQ(added_up(*pool), 64 * 63 / 2);
  EXPECT_TRUE(child_ends([&] { pool.reset(); }));
  EXPECT_TRUE(child_ends([&] {
    if (added_up(*pool) != 64 * 63 / 2) _exit(1);
    pool.reset();
  }));
  EXPECT_EQ(added_up(*pool), 64 * 63 / 2);
}

TEST_F(Fork, ALoopUnderWayInAnotherThreadIsNotTheChilds) {
  ThreadPool pool(2);
  std::atomic<int> inside{0};
  std::atomic<bool> forked{false};
  std::thread caller([&] {
    parallel_for(&pool, 2, 1, [&](int64_t, int64_t) {
      inside.fetch_add(1);
      while (!forked.load()) std::this_thread::yield();
    });
  });
  while (inside.load() < 2) std::this_thread::yield();
  EXPECT_TRUE(child_ends([&] {
    for (int round = 0; round < 3; ++round)
      if (added_up(pool) != 64 * 63 / 2) _exit(1);
  }));
  forked.store(true);
  caller.join();
}

TEST_F(Fork, TheChildStartsItsOwnThreads) {
  ThreadPool pool(2);
  EXPECT_TRUE(child_ends([&] {
    std::atomic<int> inside{0};
    parallel_for(&pool, 2, 1, [&](int64_t, int64_t) {
      inside.fetch_add(1);
      while (inside.load() < 2) std::this_thread::yield();
    });
  }));
}

TEST_F(Fork, AJobThatAnotherThreadHasOpenIsNotTheChilds) {
  ThreadPool pool(2);
  const ThreadPool::Job job{nullptr, [](void*, int) { return false; }, [](void*) {}};
  std::atomic<bool> open{false}, forked{false};
  std::thread other([&] {
    pool.open(job);
    open.store(true);
    while (!forked.load()) std::this_thread::yield();
    pool.close();
  });
  while (!open.load()) std::this_thread::yield();
  EXPECT_TRUE(child_ends([&] {
    pool.open(job);
    if (added_up(pool) != 64 * 63 / 2) _exit(1);
    pool.close();
  }));
  forked.store(true);
  other.join();
}

TEST_F(Fork, NoStepIsUnderWayInTheChild) {
  RunGate gate;
  std::atomic<bool> inside{false}, forked{false};
  std::thread other([&] {
    const RunGate::Run run(gate);
    inside.store(true);
    while (!forked.load()) std::this_thread::yield();
  });
  while (!inside.load()) std::this_thread::yield();
  EXPECT_TRUE(child_ends([&] {
    if (gate.was_quiet_at_fork()) _exit(1);
    if (gate.try_begin_change() != RunGate::Begun::kYes) _exit(2);
    gate.end_change();
    const RunGate::Run run(gate);
  }));
  forked.store(true);
  other.join();
  EXPECT_TRUE(child_ends([&] {
    if (!gate.was_quiet_at_fork()) _exit(1);
  }));
}

}  // namespace
}  // namespace anabranch
