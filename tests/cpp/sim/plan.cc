#include "sim/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace anabranch::ps::sim {

// Half of the workers have one. Not drawn like the rest: seeds replay what they did when all had one.
Replicas replicas_of(uint64_t seed) {
  std::mt19937_64 rng(seed ^ 0x9e3779b97f4a7c15u);
  const int count = std::max(1, static_cast<int>(rng() % 4));
  return {count, count == 1 || rng() % 3 == 0};
}

Plan plan_of(uint64_t seed) {
  Pick pick{std::mt19937_64(seed)};
  Plan p;
  p.seed = seed;
  p.durability = static_cast<Durability>(pick(1, 3));
  p.mode = pick(0, 1) ? Mode::kAsync : Mode::kSync;
  p.servers = pick(1, 3);
  p.workers = pick(1, 3);
  p.steps = pick(3, 16);
  p.snapshot_every = pick(1, 12);
  if (pick(0, 3)) p.faults = {pick(0, 25), pick(0, 25), pick(0, 25)};
  p.server_crashes = pick(0, 4);
  // A worker that does not come back cannot say what was acknowledged to it.
  if (p.durability != Durability::kSnapshot) p.worker_crashes = pick(0, 2);
  p.cuts = pick(0, 2);
  p.jumps = pick(0, 1);
  if (p.durability != Durability::kSnapshot) p.full_disks = pick(0, 5) == 0;
  if (p.durability != Durability::kSnapshot) p.one_without_journal = pick(0, 3) == 0;
  const Replicas replicas = replicas_of(seed);
  p.replicas = replicas.count;
  p.together = replicas.together || p.mode == Mode::kSync;
  return p;
}

std::string Plan::text() const {
  return fmt::format(
      "seed {}: L{}, {}, {} servers, {} workers, {} steps, snapshots every {}; lost {} %, twice {} %, late "
      "{} %; {} + {} crashes, {} cuts, {} jumps, {} full disks{}, {} replicas{}",
      seed, static_cast<int>(durability) - 1, mode == Mode::kSync ? "sync" : "async", servers, workers, steps,
      snapshot_every, faults.lost, faults.twice, faults.late, server_crashes, worker_crashes, cuts, jumps, full_disks,
      one_without_journal ? ", one variable at L0" : "", replicas, together ? "" : " apart");
}

}  // namespace anabranch::ps::sim
