// A program as text for people: one line a variable, one line an op, sub-blocks indented.
#pragma once
#include <string>

#include "ir/program.h"

namespace anabranch::ir {

std::string to_text(const Var& var);
std::string to_text(const Op& op, bool with_details = false);  // details: roles, namescope, where it was made
std::string to_text(const Program& program, bool with_details = false);

}  // namespace anabranch::ir
