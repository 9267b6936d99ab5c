// Which ops a model from a stranger may hold: those that turn inputs into outputs and do nothing else - no file, no
// network, no process, no call back into Python. An op is none of them until something here says so.
#pragma once
#include <string>

namespace anabranch {

// By the folder of ops/ that declares it, all of whose ops only compute; or by its own name. False for unknown types.
bool only_computes(const std::string& type);

const char* op_file(const std::string& type);  // the source file that declares it; null for unknown types

}  // namespace anabranch
