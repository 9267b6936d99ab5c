#include "sim/geo.h"
#include "sim/plan.h"

namespace anabranch::ps::sim {

GeoPlan geo_plan_of(uint64_t seed) {
  Pick pick{std::mt19937_64(seed * 0x2545f4914f6cdd1du)};
  GeoPlan p;
  p.seed = seed;
  p.durability = pick(0, 1) ? Durability::kFlushed : Durability::kJournal;
  p.servers = pick(1, 2);
  p.workers = 1 << pick(0, 2);
  p.steps = pick(2, 10);
  p.every = pick(1, 3);
  p.snapshot_every = pick(1, 8);
  if (pick(0, 3)) p.faults = {pick(0, 25), pick(0, 25), pick(0, 25)};
  p.server_crashes = pick(0, 3);
  p.cuts = pick(0, 2);
  p.replicas = replicas_of(seed).count;
  p.rules = {pick(1, 3), pick.or_zero(2, 12), pick.or_zero(2, 12)};
  return p;
}

std::string GeoPlan::text() const {
  return fmt::format(
      "GEO, seed {}: L{}, {} servers, {} workers, {} steps, exchanges every {}, snapshots every {}; lost "
      "{} %, twice {} %, late {} %; {} crashes, {} cuts, {} replicas; a "
      "table that admits after {}, expires after {}, shrinks every {}",
      seed, static_cast<int>(durability) - 1, servers, workers, steps, every, snapshot_every, faults.lost, faults.twice,
      faults.late, server_crashes, cuts, replicas, rules.admit_count, rules.expire_after, rules.shrink_every);
}

}  // namespace anabranch::ps::sim
