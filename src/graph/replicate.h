// Program -> Graph: every op of block 0 on every replica, the loss gradient's seed, and one collective per parameter
// gradient. What is decided here: which ops become nodes, on which replicas, and in which order. What their arguments
// mean: replica_nodes.h; what training adds: replica_gradients.h.
#pragma once
#include <optional>
#include <set>
#include <string>

#include "graph/build_strategy.h"
#include "graph/graph.h"
#include "graph/trainers.h"

namespace anabranch {

struct ReplicateOptions {
  int replicas = 1;
  int active = 1;  // replicas [0, active) have rows in this batch; the others only follow updates
  bool data_parallel = false;
  bool apart = false;         // replicas are on devices of their own: each has all that persists
  bool exact_fluid = false;   // seed 1/replicas whatever the row counts
  std::string loss_name;      // empty: no training
  std::set<std::string> fed;  // variables that get their value from the caller
  std::set<std::string> fetched;
  BuildStrategy build;
  int trainers = 1;                  // processes of ring 0 that train together, this one among them
  std::optional<TrainerOf> trainer;  // of several whose gradients are added up at servers
};

Graph replicate(const ir::Program& program, const ReplicateOptions& options);

}  // namespace anabranch
