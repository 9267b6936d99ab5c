// Programs as framework.proto bytes, Fluid's exact format, both ways.
#pragma once
#include <string>
#include <string_view>

#include "ir/program.h"

namespace anabranch::ir {

// A program that was read and not changed since gives the bytes that were read.
std::string serialize(const Program& program);
std::string serialize_canonical(const Program& program);  // from its contents only
std::string serialize(const Block& block);                // parts of a program, as it holds them
std::string serialize(const Op& op);
std::string serialize(const Var& var);
// InvalidArgument for anything that is not a valid program: truncated or damaged bytes, an unsupported version, block
// indices out of range, cycles of blocks, duplicate variables, unknown kinds and dtypes. Memory stays in proportion to
// the input.
ProgramRef parse_program(std::string_view bytes);

}  // namespace anabranch::ir
