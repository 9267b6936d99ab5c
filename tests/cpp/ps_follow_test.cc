// Simulated histories of models that follow the checkpoints of a cluster: what is served was trained. A seed that fails
// replays: ANABRANCH_FIRST_SEED and ANABRANCH_HISTORIES say which are run.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "sim/follow.h"
#include "sim/histories.h"

namespace anabranch::ps::sim {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kHistories = 20;
#else
constexpr uint64_t kHistories = 100;
#endif

TEST(PsFollow, Histories) {
  const uint64_t first = first_seed(), count = histories(kHistories);
  std::atomic<uint64_t> next{first};
  std::atomic<int64_t> crashes{0}, versions{0}, changes{0}, answers{0};
  std::atomic<int> failed{0};
  std::mutex mutex;
  std::string wrong;
  std::vector<std::thread> threads;
  for (unsigned t = std::max(1U, std::thread::hardware_concurrency()); t > 0; --t) {
    threads.emplace_back([&] {
      for (uint64_t seed = next++; seed < first + count && failed < 5; seed = next++) {
        const FollowPlan plan = follow_plan_of(seed);
        FollowRun history(plan, FollowDefect::kNone);
        const std::string what = history.run();
        crashes += history.crashes();
        versions += history.versions();
        changes += history.changes();
        answers += history.answers();
        if (what.empty()) continue;
        ++failed;
        const std::lock_guard lock(mutex);
        wrong += plan.text() + ": " + what + "\n";
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, "");
  EXPECT_GT(versions, static_cast<int64_t>(count));
  EXPECT_GT(changes, static_cast<int64_t>(count / 2));
  std::printf("%llu histories: %lld versions, %lld of changes only, %lld answers, %lld crashes of servers\n",
              static_cast<unsigned long long>(count), static_cast<long long>(versions.load()),
              static_cast<long long>(changes.load()), static_cast<long long>(answers.load()),
              static_cast<long long>(crashes.load()));
}

TEST(PsFollow, ASeedReplays) {
  for (const uint64_t seed : {2, 5, 19}) {
    FollowRun one(follow_plan_of(seed), FollowDefect::kNone), two(follow_plan_of(seed), FollowDefect::kNone);
    EXPECT_EQ(one.run(), two.run());
    EXPECT_EQ(one.answers(), two.answers());
    EXPECT_EQ(one.versions(), two.versions());
  }
}

TEST(PsFollow, PlantedDefectsAreFound) {
  for (int d = 1; d < static_cast<int>(FollowDefect::kDefects); ++d) {
    int seed = 1;
    while (seed <= 200 &&
           FollowRun(follow_plan_of(static_cast<uint64_t>(seed)), static_cast<FollowDefect>(d)).run().empty())
      ++seed;
    EXPECT_LE(seed, 200) << "defect " << d << " is in none of the histories";
  }
}

}  // namespace
}  // namespace anabranch::ps::sim
