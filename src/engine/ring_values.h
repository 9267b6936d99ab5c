// Trainers that add up their gradients have the same parameters as long as they begin with the same.
#pragma once
#include "comm/group.h"
#include "engine/replica_values.h"
#include "ir/program.h"

namespace anabranch {

// What the program keeps between steps becomes, in all processes of the group, what the first one has.
void share_first_values(const ir::Program& program, ReplicaValues& values, comm::Group& group);

}  // namespace anabranch
