// Types of ops that programs in files hold and that nobody makes here: they are read as other ops.
#pragma once
#include "ir/program.h"

namespace anabranch {

// Puts other ops in the place of op `at` of the block; returns how many. What the op made keeps its names.
using ReplaceOp = size_t (*)(ir::Block& block, size_t at);

// Declared before main(), beside the ops that take the place.
bool declare_file_op(const char* type, ReplaceOp replace);

// Replaces every such op. A program that nobody changes afterwards is written as it was read.
void replace_file_ops(ir::Program& program);

}  // namespace anabranch
