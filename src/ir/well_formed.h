// Checks that a program is legal: every argument names a variable that is visible from its block, sub-blocks exist and
// form a tree, and names are legal. Runs on loaded programs and before compiling.
#pragma once
#include "ir/program.h"

namespace anabranch::ir {

void check_well_formed(const Program& program);  // throws InvalidArgument or NotFound, with the op

}  // namespace anabranch::ir
