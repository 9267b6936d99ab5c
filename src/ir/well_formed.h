// The legality of a program, as rules that can be read: every argument names a variable that can be seen from the
// block, sub-blocks exist and form a tree, names are legal. Run on loaded programs and before compiling.
#pragma once
#include "ir/program.h"

namespace anabranch::ir {

void check_well_formed(const Program& program);  // InvalidArgument or NotFound, with the op

}  // namespace anabranch::ir
