// The threaded executor against the sequential one, on random graphs of a toy node that adds, records that it ran,
// holds a shared token, or fails. Runs under ThreadSanitizer too.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <random>
#include <set>
#include <thread>

#include "exec/run.h"

namespace anabranch {
namespace {

struct ToyGraph {
  std::deque<Value> values;
  std::vector<NodeSpec> specs;
  std::atomic<int> order{0};
  std::deque<std::atomic<int>> ran_at;  // when each node ran
  std::vector<int> token_holders;

  explicit ToyGraph(int buffers) {
    for (int i = 0; i < buffers; ++i) {
      Tensor& t = values.emplace_back().as<Tensor>();
      t.resize(Shape{4}, DType::kInt64);
      for (int k = 0; k < 4; ++k) t.mutable_data<int64_t>()[k] = i + k;
    }
  }

  void add(std::vector<int> reads, int write, bool token, bool fails) {
    const int id = static_cast<int>(specs.size());
    ran_at.emplace_back(-1);
    NodeSpec spec;
    spec.reads = reads;
    spec.writes = {write};
    if (token) {
      spec.tokens = {7};
      token_holders.push_back(id);
    }
    for (int r : reads) spec.ins.push_back(&values[r]);
    spec.outs = {&values[write]};
    const int n = static_cast<int>(reads.size());
    spec.kernel = [this, id, n, fails](KernelContext& c) {
      if (fails) AB_THROW(InvalidArgument, "node {} fails", id);
      ran_at[id].store(order.fetch_add(1));
      int64_t* out = c.outs[0]->as<Tensor>().mutable_data<int64_t>();
      for (int k = 0; k < 4; ++k) {
        int64_t sum = out[k] * 3 + id;  // depends on the order of writes
        for (int i = 0; i < n; ++i) sum += c.ins[i]->tensor().data<int64_t>()[k];
        out[k] = sum & 0xffffffff;
      }
    };
    specs.push_back(std::move(spec));
  }

  std::vector<int64_t> contents() const {
    std::vector<int64_t> all;
    for (const Value& v : values) {
      const int64_t* x = v.tensor().data<int64_t>();
      all.insert(all.end(), x, x + 4);
    }
    return all;
  }
};

void fill(ToyGraph& g, uint32_t seed, int failing = -1) {
  std::mt19937 rng(seed);
  const int buffers = static_cast<int>(g.values.size());
  const int nodes = 1 + static_cast<int>(rng() % 40);
  for (int i = 0; i < nodes; ++i) {
    std::vector<int> reads;
    for (unsigned k = rng() % 3; k > 0; --k) reads.push_back(static_cast<int>(rng() % buffers));
    const int write = static_cast<int>(rng() % buffers);
    g.add(reads, write, rng() % 8 == 0, i == failing);
  }
}

TEST(Exec, RandomGraphsThreadedEqualSequential) {
  const int pool_sizes[] = {2, 3, 7};
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    ToyGraph a(1 + seed % 12), b(1 + seed % 12);
    fill(a, seed);
    fill(b, seed);
    Plan pa(std::move(a.specs)), pb(std::move(b.specs));
    RunState sa(pa), sb(pb);
    run_sequential(pa, sa, {});
    ThreadPool& pool = ThreadPool::of_size(pool_sizes[seed % 3]);
    run_threaded(pb, sb, pool, {});
    ASSERT_EQ(a.contents(), b.contents()) << "seed " << seed;
    for (size_t i = 1; i < b.token_holders.size(); ++i) {
      ASSERT_LT(b.ran_at[b.token_holders[i - 1]], b.ran_at[b.token_holders[i]]) << "seed " << seed;
    }
    run_sequential(pa, sa, {});  // a plan runs again and again
    run_threaded(pb, sb, pool, {});
    ASSERT_EQ(a.contents(), b.contents()) << "second run, seed " << seed;
  }
}

// Nothing that waits for the node, through any number of others, has run.
void expect_nothing_after_ran(const Plan& plan, const ToyGraph& g, int failing) {
  std::vector<bool> after(static_cast<size_t>(plan.size()));
  after[failing] = true;
  for (int i = failing; i < plan.size(); ++i) {
    if (!after[i]) continue;
    EXPECT_EQ(g.ran_at[i], -1) << "node " << i << " after node " << failing;
    for (const int next : plan.successors(i)) after[next] = true;
  }
}

TEST(Exec, FirstErrorComesOutOnceAndThePlanRunsOn) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    ToyGraph probe(6);
    fill(probe, seed);
    const int nodes = static_cast<int>(probe.specs.size());
    const int failing = static_cast<int>(seed) % nodes;
    ToyGraph g(6);
    fill(g, seed, failing);
    Plan plan(std::move(g.specs));
    RunState state(plan);
    for (int attempt = 0; attempt < 2; ++attempt) {
      for (auto& at : g.ran_at) at.store(-1);
      try {
        run_threaded(plan, state, ThreadPool::of_size(3), {});
        FAIL() << "no error";
      } catch (const Error& e) {
        EXPECT_EQ(e.message(), fmt::format("node {} fails", failing));
      }
      EXPECT_EQ(state.failed_node(), failing);
      EXPECT_FALSE(state.finished(failing));
      expect_nothing_after_ran(plan, g, failing);
    }
  }
}

// Sixteen nodes that wait for each other end only when sixteen workers are real, on any number of cores.
TEST(Exec, NumThreadsAboveTheCoreCountIsReal) {
  constexpr int kWorkers = 16;
  std::atomic<int> arrived{0};
  std::mutex mutex;
  std::set<std::thread::id> distinct;
  std::deque<Value> values(kWorkers);
  std::vector<NodeSpec> specs(kWorkers);
  for (int i = 0; i < kWorkers; ++i) {
    specs[i].writes = {i};
    specs[i].kernel = [&](KernelContext&) {
      {
        const std::lock_guard lock(mutex);
        distinct.insert(std::this_thread::get_id());
      }
      arrived.fetch_add(1);
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (arrived.load() < kWorkers && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    };
  }
  Plan plan(std::move(specs));
  RunState state(plan);
  run_threaded(plan, state, ThreadPool::of_size(kWorkers), {});
  EXPECT_EQ(distinct.size(), kWorkers);
}

TEST(Exec, LoopsAreSplitAndTheirErrorsArrive) {
  ThreadPool& pool = ThreadPool::of_size(4);
  std::vector<int> hits(100000);
  for (int round = 0; round < 50; ++round) {
    parallel_for(&pool, 100000, 100, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) ++hits[i];
    });
  }
  for (int h : hits) ASSERT_EQ(h, 50);
  EXPECT_THROW(parallel_for(&pool, 1000, 10, [&](int64_t b, int64_t) { AB_CHECK(b == 0, Internal, "chunk"); }), Error);
  std::atomic<int64_t> sum{0};
  parallel_for(&pool, 1000, 10, [&](int64_t b, int64_t e) { sum += e - b; });
  EXPECT_EQ(sum, 1000) << "the thread pool works on after an error";
}

// Loops of several threads outside the thread pool: one is split at a time, the others run by themselves.
TEST(Exec, SeveralCallersShareAThreadPool) {
  ThreadPool& pool = ThreadPool::of_size(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        parallel_for(&pool, 1000, 10, [&](int64_t b, int64_t e) { sum += e - b; });
      }
    });
  }
  for (auto& c : callers) c.join();
  EXPECT_EQ(sum, 4 * 200 * 1000);
}

// A thread with a job open splits its loops as worker 0 while another thread, not a worker, splits its own.
TEST(Exec, LoopsOfAJobAndOfOutsidersAreKeptApart) {
  constexpr int64_t kItems = 4096;
  ThreadPool& pool = ThreadPool::of_size(3);
  const auto loops = [&](int64_t* hits_per_item) {
    std::vector<int> hits(kItems);
    parallel_for(&pool, kItems, 64, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) ++hits[i];
    });
    *hits_per_item += std::count(hits.begin(), hits.end(), 1);
  };
  constexpr int kRounds = 3000;
  int64_t inside = 0, outside = 0;
  std::thread outsider([&] {
    for (int round = 0; round < kRounds; ++round) loops(&outside);
  });
  const auto nothing_to_do = [](void*, int) { return false; };
  for (int round = 0; round < kRounds; ++round) {
    pool.open({nullptr, nothing_to_do, [](void*) {}});
    loops(&inside);
    pool.close();
  }
  outsider.join();
  EXPECT_EQ(inside, kRounds * kItems);
  EXPECT_EQ(outside, kRounds * kItems);
}

}  // namespace
}  // namespace anabranch
