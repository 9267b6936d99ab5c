// The worker of a cluster that a program is for, from its ops that send gradients.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"

namespace anabranch {

struct TrainerOf {
  int number = 0;
  bool in_step = false;              // all workers take each step together (sync training)
  std::vector<std::string> servers;  // in sync training: those that get gradients in each step
};
// None if the program receives nothing from servers and meets no other process.
std::optional<TrainerOf> trainer_of(const ir::Program& program);

}  // namespace anabranch
