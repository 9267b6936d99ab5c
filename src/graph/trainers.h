// The worker of a cluster that a program is for, from its ops that send gradients.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/build_strategy.h"
#include "ir/program.h"

namespace anabranch {

struct TrainerOf {
  int number = 0;
  bool sync = false;                 // servers apply one gradient of each worker per step
  bool in_step = false;              // sync, and there are several workers
  std::vector<std::string> servers;  // in sync training: those that get gradients in each step
};
// None if the program receives nothing from servers and meets no other process.
std::optional<TrainerOf> trainer_of(const ir::Program& program);

// All workers whose numbers a program has.
std::set<int> workers_of(const ir::Program& program);
// (worker, server) for the servers that the barriers and lookups of a program name.
std::set<std::pair<int, std::string>> servers_of(const ir::Program& program);
// Whether it is the startup program of a worker that exchanges differences (GEO).
bool starts_geo(const ir::Program& program);

// Whether replicas apply, or send, their own gradients instead of their sum (BuildStrategy.async_mode). A step that all
// workers take together has one gradient per worker, whichever strategy is set.
bool replicas_are_independent(const ir::Program& program, const BuildStrategy& build, int replicas);

}  // namespace anabranch
