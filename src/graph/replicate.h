// Program -> Graph: every op of block 0 on every replica, the loss gradient's seed, and one collective per parameter
// gradient. What is decided here: which replica an op runs on, and which replica's variable an argument means.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "graph/build_strategy.h"
#include "graph/graph.h"

namespace anabranch {

struct ReplicateOptions {
  int replicas = 1;
  int active = 1;  // replicas [0, active) have rows in this batch; the others only follow updates
  bool data_parallel = false;
  bool exact_fluid = false;   // seed 1/replicas whatever the row counts
  std::string loss_name;      // empty: no training
  std::set<std::string> fed;  // variables that get their value from the caller
  std::set<std::string> fetched;
  BuildStrategy build;
};

Graph replicate(const ir::Program& program, const ReplicateOptions& options);

// Persistable variables that exist once for all replicas of a process: those that only optimizer ops write.
std::set<std::string> shared_persistables(const ir::Program& program);

}  // namespace anabranch
