// Asynchronous nodes, which another thread completes after their kernels have returned: in sequential and threaded
// runs, whichever comes first, with errors on both sides. Runs under ThreadSanitizer too.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

#include "exec/run.h"

namespace anabranch {
namespace {

using std::chrono::milliseconds;

// Ends nodes in its own thread, in an order that a seed decides.
class Elsewhere {
 public:
  explicit Elsewhere(uint32_t seed) : rng_(seed), thread_([this] { work(); }) {}
  ~Elsewhere() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    some_.notify_all();
    thread_.join();
  }
  void give(Completion completion, std::function<void()> first, bool fails = false) {
    const std::lock_guard lock(mutex_);
    given_.push_back({std::move(completion), std::move(first), fails});
    some_.notify_all();
  }

 private:
  struct Given {
    Completion completion;
    std::function<void()> first;
    bool fails;
  };
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      some_.wait(lock, [this] { return over_ || !given_.empty(); });
      if (given_.empty()) return;
      const size_t at = rng_() % given_.size();
      Given g = std::move(given_[at]);
      given_.erase(given_.begin() + static_cast<std::ptrdiff_t>(at));
      lock.unlock();
      if (rng_() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(rng_() % 50));
      g.first();
      if (g.fails) {
        g.completion.fail(std::make_exception_ptr(Error(ErrorKind::kUnavailable, "the other side is gone")));
      } else {
        g.completion.done();
      }
      lock.lock();
    }
  }

  std::mt19937 rng_;
  std::mutex mutex_;
  std::condition_variable some_;
  std::deque<Given> given_;
  bool over_ = false;
  std::thread thread_;
};

// Nodes that add to buffers what they read; some of them elsewhere.
struct Toy {
  std::deque<std::atomic<int64_t>> buffers;
  std::vector<NodeSpec> specs;
  Elsewhere& elsewhere;

  Toy(Elsewhere& e, uint32_t seed, bool later, int failing = -1) : elsewhere(e) {
    std::mt19937 rng(seed);
    const int n_buffers = 1 + static_cast<int>(rng() % 8), nodes = 1 + static_cast<int>(rng() % 30);
    for (int i = 0; i < n_buffers; ++i) buffers.emplace_back(i);
    for (int i = 0; i < nodes; ++i) {
      std::vector<int> reads;
      for (unsigned k = rng() % 3; k > 0; --k) reads.push_back(static_cast<int>(rng() % n_buffers));
      add(i, reads, static_cast<int>(rng() % n_buffers), rng() % 3 == 0 && later, i == failing);
    }
  }
  void add(int id, const std::vector<int>& reads, int write, bool later, bool fails) {
    NodeSpec spec;
    spec.reads = reads;
    spec.writes = {write};
    spec.later = later;
    const auto work = [this, id, reads, write] {
      int64_t sum = buffers[write].load() * 3 + id;
      for (const int r : reads) sum += buffers[r].load();
      buffers[write].store(sum & 0xffffffff);
    };
    spec.kernel = [this, work, later, fails](KernelContext& c) {
      if (later) return elsewhere.give(AsyncContext::of(c).take(), work, fails);
      AB_CHECK(!fails, Unavailable, "the other side is gone");
      work();
    };
    specs.push_back(std::move(spec));
  }
  std::vector<int64_t> contents() const { return {buffers.begin(), buffers.end()}; }
};

TEST(Asynchronous, RandomGraphsEqualThoseWithoutIt) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    Elsewhere elsewhere(seed);
    Toy plain(elsewhere, seed, false), one(elsewhere, seed, true), many(elsewhere, seed, true);
    Plan p(std::move(plain.specs)), po(std::move(one.specs)), pm(std::move(many.specs));
    RunState s(p), so(po), sm(pm);
    for (int run = 0; run < 3; ++run) {
      run_sequential(p, s, {});
      run_sequential(po, so, {});
      run_threaded(pm, sm, ThreadPool::of_size(3), {});
      ASSERT_EQ(plain.contents(), one.contents()) << "sequential, seed " << seed;
      ASSERT_EQ(plain.contents(), many.contents()) << "threaded, seed " << seed;
    }
  }
}

TEST(Asynchronous, AnErrorElsewhereIsTheRunsAndThePlanRunsOn) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Elsewhere elsewhere(seed);
    const int nodes = static_cast<int>(Toy(elsewhere, seed, true).specs.size());
    const int failing = static_cast<int>(seed) % nodes;
    Toy toy(elsewhere, seed, true, failing);
    Plan plan(std::move(toy.specs));
    RunState state(plan);
    for (int run = 0; run < 4; ++run) {
      const auto go = [&] {
        run % 2 ? run_sequential(plan, state, {}) : run_threaded(plan, state, ThreadPool::of_size(2), {});
      };
      try {
        go();
        FAIL() << "no error, seed " << seed;
      } catch (const Error& e) {
        EXPECT_EQ(e.message(), "the other side is gone");
      }
      EXPECT_EQ(state.failed_node(), failing);
      EXPECT_FALSE(state.finished(failing));
      if (state.later()) {
        for (int i = 0; i < nodes; ++i) EXPECT_FALSE(state.later()->open(i)) << "node " << i << ", seed " << seed;
      }
    }
  }
}

// A chain of one node that waits 200 ms elsewhere, and one parallel to it that takes 200 ms here.
TEST(Asynchronous, OneThreadContinuesMeanwhile) {
  std::vector<NodeSpec> specs(3);
  std::thread elsewhere;
  specs[0].writes = {0};
  specs[0].later = true;
  specs[0].kernel = [&](KernelContext& c) {
    elsewhere = std::thread([completion = AsyncContext::of(c).take()]() mutable {
      std::this_thread::sleep_for(milliseconds(200));
      completion.done();
    });
  };
  bool here = false, first = false;
  specs[1].writes = {1};
  RunState* run = nullptr;
  specs[1].kernel = [&](KernelContext&) { first = run->later()->open(0), here = true; };
  specs[2].reads = {0, 1};
  specs[2].kernel = [&](KernelContext&) { EXPECT_FALSE(run->later()->open(0)); };
  Plan plan(std::move(specs));
  RunState state(plan);
  run = &state;
  run_sequential(plan, state, {});
  elsewhere.join();
  EXPECT_TRUE(here && first);
}

// The failure of the run reaches the work that is under way elsewhere, and the run waits for that work.
TEST(Asynchronous, AFailedRunCancelsAndWaits) {
  for (const bool threaded : {false, true}) {
    std::vector<NodeSpec> specs(2);
    std::thread elsewhere;
    std::atomic<bool> heard{false};
    specs[0].writes = {0};
    specs[0].later = true;
    specs[0].kernel = [&](KernelContext& c) {
      elsewhere = std::thread([&heard, completion = AsyncContext::of(c).take()]() mutable {
        while (!completion.cancelled()) std::this_thread::sleep_for(milliseconds(1));
        heard = true;
        completion.done();
      });
    };
    specs[1].kernel = [](KernelContext&) { AB_THROW(InvalidArgument, "no"); };
    Plan plan(std::move(specs));
    RunState state(plan);
    EXPECT_THROW(threaded ? run_threaded(plan, state, ThreadPool::of_size(2), {}) : run_sequential(plan, state, {}),
                 Error);
    EXPECT_TRUE(heard);
    EXPECT_EQ(state.failed_node(), 1);
    EXPECT_TRUE(state.finished(0));
    elsewhere.join();
  }
}

TEST(Asynchronous, ADroppedCompletionIsAnError) {
  std::vector<NodeSpec> specs(1);
  specs[0].later = true;
  specs[0].kernel = [](KernelContext& c) { const Completion dropped = AsyncContext::of(c).take(); };
  Plan plan(std::move(specs));
  RunState state(plan);
  for (const bool watched : {false, true}) {
    const std::function<void(int)> probe = [](int) {};
    RunOptions options;
    if (watched) options.probe = &probe;
    EXPECT_THROW(run_sequential(plan, state, options), Error);
    EXPECT_THROW(run_threaded(plan, state, ThreadPool::of_size(2), options), Error);
  }
}

TEST(Asynchronous, AKernelThatIsNotDeclaredCannotTakeOne) {
  std::vector<NodeSpec> specs(1);
  specs[0].kernel = [](KernelContext& c) { AsyncContext::of(c); };
  Plan plan(std::move(specs));
  RunState state(plan);
  EXPECT_THROW(run_sequential(plan, state, {}), Error);
}

TEST(Asynchronous, AStallNamesStartedNodes) {
  for (const bool threaded : {false, true}) {
    std::vector<NodeSpec> specs(2);
    std::thread elsewhere;
    specs[0].writes = {0};
    specs[0].later = true;
    specs[0].kernel = [&](KernelContext& c) {
      elsewhere = std::thread([completion = AsyncContext::of(c).take()]() mutable {
        std::this_thread::sleep_for(milliseconds(2600));
        completion.done();
      });
    };
    specs[1].reads = {0};
    specs[1].kernel = [](KernelContext&) {};
    Plan plan(std::move(specs));
    RunState state(plan);
    const std::function<std::string(int)> describe = [](int node) { return node == 0 ? "the pull" : "the reader"; };
    state.watch_for_stalls(describe);
    RunOptions options;
    options.describe = &describe;
    options.stall_report_s = 0.5;
    testing::internal::CaptureStderr();
    threaded ? run_threaded(plan, state, ThreadPool::of_size(2), options) : run_sequential(plan, state, options);
    const std::string text = testing::internal::GetCapturedStderr();
    elsewhere.join();
    EXPECT_NE(text.find("started, not finished: the pull"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace anabranch
