// Simulated histories of clusters: what was acknowledged is there (L1: the process dies, L2: power is lost), or its
// loss is counted (L0); nothing is applied twice or in part, and nothing hangs. A seed that fails replays:
//
//   ANABRANCH_HISTORIES=1000000 ANABRANCH_FIRST_SEED=1 anabranch_tests --gtest_filter='PsSimulation.*'
#include <gtest/gtest.h>

#include <cstdlib>

#include "sim/cluster.h"

namespace anabranch::ps::sim {
namespace {

uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* given = std::getenv(variable);
  return given ? std::strtoull(given, nullptr, 10) : otherwise;
}

TEST(PsSimulation, Histories) {
  const uint64_t first = number_of("ANABRANCH_FIRST_SEED", 1), count = number_of("ANABRANCH_HISTORIES", 2000);
  int64_t crashes = 0, lost = 0, applied = 0;
  int failed = 0;
  for (uint64_t seed = first; seed < first + count && failed < 5; ++seed) {
    const Plan plan = plan_of(seed);
    ClusterRun run(plan, Planted::kNone);
    const std::string wrong = run.run();
    if (!wrong.empty()) ++failed;
    EXPECT_EQ(wrong, "") << plan.text();
    crashes += run.crashes();
    lost += run.lost();
    applied += run.applied();
  }
  EXPECT_GT(applied, static_cast<int64_t>(count));
  if (count >= 1000) {
    EXPECT_GT(crashes, 500);
    EXPECT_GT(lost, 50);
  }
  std::printf("%lld updates, %lld crashes of servers, %lld losses reported\n", static_cast<long long>(applied),
              static_cast<long long>(crashes), static_cast<long long>(lost));
}

TEST(PsSimulation, ASeedReplays) {
  for (const uint64_t seed : {3, 17, 91}) {
    ClusterRun one(plan_of(seed), Planted::kNone), two(plan_of(seed), Planted::kNone);
    EXPECT_EQ(one.run(), two.run());
    EXPECT_EQ(one.applied(), two.applied());
    EXPECT_EQ(one.crashes(), two.crashes());
  }
}

TEST(PsSimulation, PlantedDefectsAreFound) {
  for (int d = 1; d < static_cast<int>(Planted::kDefects); ++d) {
    uint64_t seed = 1;
    while (seed <= 1000 && ClusterRun(plan_of(seed), static_cast<Planted>(d)).run().empty()) ++seed;
    EXPECT_LE(seed, 1000U) << "defect " << d << " is in none of the histories";
  }
}

}  // namespace
}  // namespace anabranch::ps::sim
