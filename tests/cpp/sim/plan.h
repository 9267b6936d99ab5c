// The events of a history: all of it follows from its seed.
#pragma once
#include <random>
#include <string>

#include "ps/server.h"
#include "sim/network.h"

namespace anabranch::ps::sim {

// Whole numbers from one to another.
struct Pick {
  std::mt19937_64 rng;
  int operator()(int low, int high) { return low + static_cast<int>(rng() % static_cast<uint64_t>(high - low + 1)); }
  // In half of all cases 0.
  int or_zero(int low, int high) { return (*this)(0, 1) ? (*this)(low, high) : 0; }
};

struct Plan {
  uint64_t seed = 1;
  Durability durability = Durability::kJournal;
  Mode mode = Mode::kAsync;
  int servers = 1, workers = 1, steps = 8, snapshot_every = 4;
  Faults faults;
  int server_crashes = 0, worker_crashes = 0, cuts = 0, jumps = 0, full_disks = 0;
  bool one_without_journal = false;  // of two variables, where the other one has one
  int replicas = 1;                  // of each worker
  bool together = true;              // replicas add up their gradients, as in sync; otherwise each sends its own
  std::string text() const;
};
struct Replicas {
  int count = 1;
  bool together = true;
};
Replicas replicas_of(uint64_t seed);
Plan plan_of(uint64_t seed);

}  // namespace anabranch::ps::sim
