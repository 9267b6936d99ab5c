// Loops that are split at the same time: which threads take part, and that no two share what they keep their place in.
// Chunks wait for each other, so that the loops overlap on any machine.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "base/cpu.h"
#include "base/flags.h"
#include "exec/run.h"

namespace anabranch {
namespace {

constexpr int64_t kChunks = 8;

// Whether it became true within some seconds.
template <class Fn> bool comes_true(Fn&& what) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!what()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::yield();
  }
  return true;
}

struct Hits {
  std::array<std::atomic<int>, kChunks> of_chunk{};
  void add(int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) of_chunk[i].fetch_add(1);
  }
  void expect_one_each() const {
    for (const auto& hits : of_chunk) EXPECT_EQ(hits.load(), 1);
  }
};

TEST(ThreadPoolLoops, AWorkerHelpsAnyOpenJob) {
  ThreadPool& pool = ThreadPool::of_size(2);
  std::atomic<int> inside{0};
  bool both = true;
  pool.open({nullptr, [](void*, int) { return false; }, [](void*) {}});
  parallel_for(&pool, 2, 1, [&](int64_t begin, int64_t) {
    inside.fetch_add(1);
    const bool met = comes_true([&] { return inside.load() == 2; });
    if (begin == 0) both = met;
  });
  pool.close();
  EXPECT_TRUE(both);
}

// A loop of which the caller and the worker do one chunk each.
void meet_in_a_loop(ThreadPool& pool) {
  std::atomic<int> inside{0};
  parallel_for(&pool, 2, 1, [&](int64_t, int64_t) {
    inside.fetch_add(1);
    EXPECT_TRUE(comes_true([&] { return inside.load() == 2; }));
  });
}

TEST(ThreadPoolLoops, AWorkerLooksForWorkAsLongAsTheFlagSays) {
  if (usable_cores() < 2) GTEST_SKIP() << "on one core no thread spins";
  const FlagValue before = get_flag("FLAGS_spin_us");
  set_flag("FLAGS_spin_us", std::numeric_limits<int64_t>::max());
  ThreadPool pool(2);
  meet_in_a_loop(pool);
  const uint32_t parks = pool.parks();
  for (int k = 0; k < 10; ++k) meet_in_a_loop(pool);
  EXPECT_EQ(pool.parks(), parks);
  set_flag("FLAGS_spin_us", int64_t{0});
  meet_in_a_loop(pool);
  EXPECT_TRUE(comes_true([&] { return pool.parks() > parks; }));
  meet_in_a_loop(pool);
  set_flag("FLAGS_spin_us", before);
}

TEST(ThreadPoolLoops, WhileOneOutsiderSplitsALoopTheOthersRunAlone) {
  ThreadPool& pool = ThreadPool::of_size(2);
  Hits first, second;
  std::atomic<bool> begun{false}, done{false};
  std::thread other([&] {
    EXPECT_TRUE(comes_true([&] { return begun.load(); }));
    const auto self = std::this_thread::get_id();
    parallel_for(&pool, kChunks, 1, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      second.add(begin, end);
    });
    done.store(true);
  });
  parallel_for(&pool, kChunks, 1, [&](int64_t begin, int64_t end) {
    begun.store(true);
    comes_true([&] { return done.load(); });
    first.add(begin, end);
  });
  other.join();
  first.expect_one_each();
  second.expect_one_each();
}

// Each of three nodes splits a loop whose chunks go on when all three loops have started.
TEST(ThreadPoolLoops, LoopsOfSeveralWorkersAreKeptApart) {
  constexpr int kNodes = 3;
  ThreadPool& pool = ThreadPool::of_size(kNodes);
  std::array<Hits, kNodes> hits;
  std::array<std::atomic<bool>, kNodes> begun{};
  std::vector<NodeSpec> specs(kNodes);
  for (int node = 0; node < kNodes; ++node) {
    specs[node].writes = {node};
    specs[node].kernel = [&, node](KernelContext&) {
      parallel_for(&pool, kChunks, 1, [&](int64_t begin, int64_t end) {
        begun[node].store(true);
        comes_true([&] { return begun[0].load() && begun[1].load() && begun[2].load(); });
        hits[node].add(begin, end);
      });
    };
  }
  Plan plan(std::move(specs));
  RunState state(plan);
  run_threaded(plan, state, pool, {});
  for (const Hits& h : hits) h.expect_one_each();
}

TEST(ThreadPoolLoops, ALoopInsideAChunkRunsInItsThread) {
  ThreadPool& pool = ThreadPool::of_size(2);
  std::array<Hits, 2> inner;
  Hits outer;
  parallel_for(&pool, kChunks, 1, [&](int64_t begin, int64_t end) {
    outer.add(begin, end);
    if (begin > 1) return;
    const auto self = std::this_thread::get_id();
    parallel_for(&pool, kChunks, 1, [&](int64_t b, int64_t e) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      inner[begin].add(b, e);
    });
  });
  outer.expect_one_each();
  for (const Hits& h : inner) h.expect_one_each();
}

}  // namespace
}  // namespace anabranch
