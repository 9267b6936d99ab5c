#include "sim/follow.h"
#include "sim/plan.h"

namespace anabranch::ps::sim {

FollowPlan follow_plan_of(uint64_t seed) {
  Pick pick{std::mt19937_64(seed * 0x9e3779b97f4a7c15u + 7)};
  FollowPlan p;
  p.seed = seed;
  p.mode = pick(0, 2) ? Mode::kSync : Mode::kAsync;
  p.durability = pick(0, 1) ? Durability::kFlushed : Durability::kJournal;
  p.servers = pick(1, 3);
  p.workers = pick(1, 3);
  p.steps = pick(4, 16);
  p.snapshot_every = pick(2, 10);
  if (pick(0, 2)) p.faults = {pick(0, 20), pick(0, 20), pick(0, 20)};
  p.server_crashes = pick(0, 2);
  p.rules = {pick(1, 3), pick.or_zero(1, 6), pick.or_zero(1, 6)};
  p.saves = pick(20, 100);
  p.wholes = pick(0, 40);
  p.given_up = pick.or_zero(5, 40);
  p.pins = pick.or_zero(2, 10);
  p.shares = pick(0, 3) == 0;
  return p;
}

std::string FollowPlan::text() const {
  return fmt::format(
      "followers, seed {}: {}, L{}, {} servers, {} workers, {} steps, snapshots every {}; lost {} %, twice {} %, late "
      "{} %; {} crashes; admits after {}, expires after {}, shrinks every {}; saves {} %, whole {} %, given up {} %, "
      "pinned {} %{}",
      seed, mode == Mode::kSync ? "sync" : "async", static_cast<int>(durability) - 1, servers, workers, steps,
      snapshot_every, faults.lost, faults.twice, faults.late, server_crashes, rules.admit_count, rules.expire_after,
      rules.shrink_every, saves, wholes, given_up, pins, shares ? ", shared" : "");
}

}  // namespace anabranch::ps::sim
