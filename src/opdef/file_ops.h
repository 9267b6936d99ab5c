// Op types that exist only in program files: they are converted to other ops when they are read.
#pragma once
#include "ir/program.h"

namespace anabranch {

// Replaces op `at` of the block by other ops; returns their number. The outputs keep their names.
using ReplaceOp = size_t (*)(ir::Block& block, size_t at);

// Declared before main(), next to the replacing ops.
bool declare_file_op(const char* type, ReplaceOp replace);

// Replaces every such op. A program that is not changed afterwards is written as it was read.
void replace_file_ops(ir::Program& program);

}  // namespace anabranch
