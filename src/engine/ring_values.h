// Workers that add up their gradients keep equal parameters if they start with equal ones.
#pragma once
#include "comm/group.h"
#include "engine/replica_values.h"
#include "ir/program.h"

namespace anabranch {

// Copies the program's persistent values from the first process to all others of the group.
void share_first_values(const ir::Program& program, ReplicaValues& values, comm::Group& group);

}  // namespace anabranch
