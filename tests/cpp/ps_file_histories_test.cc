// Simulated histories of queues of files: each file is trained, none is with two replicas that live, of one worker or
// of two, and none comes again when its worker knows that it is done. In half of them workers have replicas. A seed
// that fails replays.
#include <gtest/gtest.h>

#include "sim/files.h"

namespace anabranch::ps::sim {
namespace {

constexpr uint64_t kHistories = 2000;

TEST(PsFileHistories, EachFileIsTrained) {
  int64_t crashes = 0, interrupted = 0, trained = 0, files = 0, with_replicas = 0;
  std::string wrong;
  for (uint64_t seed = 1; seed <= kHistories && wrong.empty(); ++seed) {
    const FilePlan plan = file_plan_of(seed);
    FileRun history(plan, Planted::kNone);
    if (const std::string what = history.run(); !what.empty()) wrong = plan.text() + ": " + what;
    crashes += history.crashes();
    interrupted += history.interrupted();
    trained += history.trained();
    files += plan.files;
    with_replicas += plan.replicas > 1;
  }
  EXPECT_EQ(wrong, "");
  EXPECT_GT(crashes, 500);
  EXPECT_GT(interrupted, 500);
  EXPECT_GT(with_replicas, static_cast<int64_t>(kHistories * 2 / 5));
  std::printf(
      "%lld files were trained %lld times, with %lld crashes of servers; workers that were killed had %lld of them; "
      "workers have replicas in %lld histories\n",
      static_cast<long long>(files), static_cast<long long>(trained), static_cast<long long>(crashes),
      static_cast<long long>(interrupted), static_cast<long long>(with_replicas));
}

TEST(PsFileHistories, ASeedReplays) {
  for (const uint64_t seed : {3, 17, 91}) {
    FileRun one(file_plan_of(seed), Planted::kNone), two(file_plan_of(seed), Planted::kNone);
    EXPECT_EQ(one.run(), two.run());
    EXPECT_EQ(one.trained(), two.trained());
    EXPECT_EQ(one.crashes(), two.crashes());
  }
}

TEST(PsFileHistories, PlantedDefectsAreFound) {
  for (const Planted defect : {Planted::kJournalIsNotWritten, Planted::kLeasedAndNotWritten, Planted::kBeatsDoNotCome,
                               Planted::kTheDeadKeepTheirFiles, Planted::kSyncDoesNothing}) {
    uint64_t seed = 1;
    while (seed <= 1000 && FileRun(file_plan_of(seed), defect).run().empty()) ++seed;
    EXPECT_LE(seed, 1000) << "defect " << static_cast<int>(defect) << " is in none of the histories";
  }
}

}  // namespace
}  // namespace anabranch::ps::sim
