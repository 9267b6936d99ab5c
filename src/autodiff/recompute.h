// Saves memory in the backward pass: only checkpoints of the forward ops are kept, everything else is recomputed.
#pragma once
#include <string>
#include <vector>

#include "ir/program.h"

namespace anabranch {

// Checkpoints cut the ops [0, backward) of the block into segments. Values that only their own segment reads are
// recomputed before the first op from `backward` on that belongs to the segment, and are read there by those ops: the
// copies' names end in ".subprog_N". Values after the last checkpoint are kept, and so are values that cannot be
// reproduced: results of ops with effects, of blocks, of random ops without a draw number, and variables that several
// segments write. NotFound: a checkpoint is not a variable of the block.
void recompute(ir::Block& block, size_t backward, const std::vector<std::string>& checkpoints);

}  // namespace anabranch
