// Less memory for the backward pass: of the forward ops only checkpoints are kept, the rest is computed again.
#pragma once
#include <string>
#include <vector>

#include "ir/program.h"

namespace anabranch {

// Checkpoints cut the ops [0, backward) of the block into parts. What a part makes and no other part reads is made
// again, in front of the first op from `backward` on that is about the part, and is read there by those ops: copies
// have names that end in ".subprog_N". What follows the last checkpoint is kept, as is what cannot be made again with
// the same values: results of ops with effects, of blocks, of numbers drawn without a number of their own, and
// variables that are written twice. NotFound: a checkpoint is no variable of the block.
void recompute(ir::Block& block, size_t backward, const std::vector<std::string>& checkpoints);

}  // namespace anabranch
