// The worker of a cluster that a program is for, from its ops that send gradients.
#pragma once
#include <optional>
#include <string>
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

// Whether replicas apply, or send, their own gradients instead of their sum (BuildStrategy.async_mode). A step that all
// workers take together has one gradient per worker, whichever strategy is set.
bool replicas_are_independent(const ir::Program& program, const BuildStrategy& build, int replicas);

}  // namespace anabranch
