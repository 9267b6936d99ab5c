// Program -> Graph: every op of block 0 on every replica, the loss gradient's seed, and one collective per parameter
// gradient. Decides which ops become nodes, on which replicas, and in which order. Arguments: replica_nodes.h;
// training: replica_gradients.h.
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
  bool apart = false;         // replicas are on separate devices: each has all persistent variables
  bool independent = false;   // each replica applies, or sends, its own gradients
  bool exact_fluid = false;   // seed 1/replicas for any row counts
  std::string loss_name;      // empty: no training
  std::set<std::string> fed;  // variables whose value the caller provides
  std::set<std::string> fetched;
  BuildStrategy build;
  int trainers = 1;                  // processes of ring 0 that train together, including this one
  std::optional<TrainerOf> trainer;  // this worker of several whose gradients are summed at servers
};

Graph replicate(const ir::Program& program, const ReplicateOptions& options);

}  // namespace anabranch
