// Simulated histories of clusters: what was acknowledged is there (L1: the process dies, L2: power is lost), or its
// loss is counted (L0); nothing is applied twice or in part, and nothing hangs. Every fourth history is one of GEO and
// of sums by name. In half of them workers have replicas. A seed that fails replays; `./dev simulate 1000000 1` runs a
// million of them from seed 1 on.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "sim/cluster.h"
#include "sim/geo.h"
#include "sim/histories.h"

namespace anabranch::ps::sim {
namespace {

// Sanitizers take ten times as long.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kHistories = 2000;
#else
constexpr uint64_t kHistories = 20000;
#endif

constexpr bool is_geo(uint64_t seed) { return seed % 4 == 0; }

// The events that many histories have seen. Each is run by one thread, and they share nothing.
struct Seen {
  std::atomic<int64_t> applied{0}, crashes{0}, lost{0}, exchanges{0}, with_replicas{0};
  std::atomic<int> failed{0};
  std::mutex mutex;
  std::string wrong;

  void run(uint64_t seed) {
    std::string what, plan;
    if (is_geo(seed)) {
      const GeoPlan p = geo_plan_of(seed);
      GeoRun history(p, Planted::kNone);
      what = history.run();
      plan = p.text();
      with_replicas += p.replicas > 1;
      crashes += history.crashes();
      exchanges += history.exchanges();
    } else {
      const Plan p = plan_of(seed);
      ClusterRun history(p, Planted::kNone);
      what = history.run();
      plan = p.text();
      with_replicas += p.replicas > 1;
      crashes += history.crashes();
      lost += history.lost();
      applied += history.applied();
    }
    if (what.empty()) return;
    ++failed;
    const std::lock_guard lock(mutex);
    wrong += plan + ": " + what + "\n";
  }
};

TEST(PsSimulation, Histories) {
  const uint64_t first = first_seed(), count = histories(kHistories);
  Seen seen;
  std::atomic<uint64_t> next{first};
  std::vector<std::thread> threads;
  for (unsigned t = std::max(1U, std::thread::hardware_concurrency()); t > 0; --t) {
    threads.emplace_back([&] {
      for (uint64_t seed = next++; seed < first + count && seen.failed < 5; seed = next++) seen.run(seed);
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(seen.wrong, "");
  EXPECT_GT(seen.applied, static_cast<int64_t>(count));
  if (count >= 1000) {
    EXPECT_GT(seen.crashes, 500);
    EXPECT_GT(seen.lost, 50);
    EXPECT_GT(seen.exchanges, 1000);
    EXPECT_GT(seen.with_replicas, static_cast<int64_t>(count * 2 / 5));
  }
  std::printf(
      "%llu histories, %lld with replicas: %lld updates, %lld exchanges, %lld crashes of servers, %lld losses "
      "reported\n",
      static_cast<unsigned long long>(count), static_cast<long long>(seen.with_replicas),
      static_cast<long long>(seen.applied), static_cast<long long>(seen.exchanges),
      static_cast<long long>(seen.crashes), static_cast<long long>(seen.lost));
}

// A worker's first start says hello late to a server that was started again: the one that lives is not pushed out.
TEST(PsSimulation, ALateHelloOfAWorkerThatIsGone) {
  Plan plan = plan_of(168261);
  plan.replicas = 1;
  plan.together = true;
  EXPECT_EQ(ClusterRun(plan, Planted::kNone).run(), "");
}

// A replica's gradients leave in separate messages: none is acknowledged with those of another one.
TEST(PsSimulation, ReplicasThatPushAtTheSameTime) {
  Seen seen;
  for (const uint64_t seed : {71, 87, 109, 110}) {
    EXPECT_FALSE(plan_of(seed).together);
    seen.run(seed);
  }
  EXPECT_EQ(seen.wrong, "");
}

TEST(PsSimulation, ASeedReplays) {
  for (const uint64_t seed : {3, 17, 91}) {
    ClusterRun one(plan_of(seed), Planted::kNone), two(plan_of(seed), Planted::kNone);
    EXPECT_EQ(one.run(), two.run());
    EXPECT_EQ(one.applied(), two.applied());
    EXPECT_EQ(one.crashes(), two.crashes());
    GeoRun three(geo_plan_of(seed), Planted::kNone), four(geo_plan_of(seed), Planted::kNone);
    EXPECT_EQ(three.run(), four.run());
    EXPECT_EQ(three.exchanges(), four.exchanges());
    EXPECT_EQ(three.crashes(), four.crashes());
  }
}

template <class Run> int histories_until(Planted defect, Run run) {
  for (int seed = 1; seed <= 1000; ++seed) {
    if (!run(static_cast<uint64_t>(seed), defect).empty()) return seed;
  }
  return 1001;
}

TEST(PsSimulation, PlantedDefectsAreFound) {
  for (int d = 1; d < static_cast<int>(Planted::kDefects); ++d) {
    const int found = histories_until(
        static_cast<Planted>(d), [](uint64_t seed, Planted defect) { return ClusterRun(plan_of(seed), defect).run(); });
    EXPECT_LE(found, 1000) << "defect " << d << " is in none of the histories";
  }
}

TEST(PsSimulation, PlantedDefectsOfDifferencesAndSumsAreFound) {
  for (const Planted defect :
       {Planted::kJournalIsNotWritten, Planted::kSyncDoesNothing, Planted::kRequestsLoseTheirNumber,
        Planted::kAcknowledgedBeforeItCame, Planted::kStateIsNotLoaded, Planted::kUpdatesComeTwice,
        Planted::kChangedRowsAreNotTold, Planted::kRemovedRowsAreNotTold, Planted::kSumsForgetOne}) {
    const int found = histories_until(
        defect, [](uint64_t seed, Planted planted) { return GeoRun(geo_plan_of(seed), planted).run(); });
    EXPECT_LE(found, 1000) << "defect " << static_cast<int>(defect) << " is in none of the histories";
  }
}

}  // namespace
}  // namespace anabranch::ps::sim
