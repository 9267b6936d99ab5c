// An op against the declaration of its type: slots, attributes, defaults.
#pragma once
#include <string>
#include <vector>

#include "opdef/op_def.h"

namespace anabranch {

// For existing ops (programs read from files, gradient ops): fills defaults, orders slots, converts attribute types.
// Unknown slots are refused; unknown attributes are kept (files of other versions have some).
void check_op(ir::Op& op);
// An unneeded result has a name with this prefix, and is a separate variable.
inline constexpr const char* kDiscarded = "@DISCARDED@";
inline bool is_discarded(const std::string& name) { return name.starts_with(kDiscarded); }
// A checked copy, to be run: programs come from files too, and kernels rely on what the check guarantees. Outputs that
// are only named are omitted; missing intermediate ones, and those that older releases did not have, are discarded
// ones.
ir::OpRef checked_copy(const ir::Op& op);
// The variables that the op writes: its outputs except those that are only named.
std::vector<std::string> written_args(const ir::Op& op);
// Refuses an op that is not in the form of check_op: slots, required arguments, attributes with their types and checks.
// For ops that passes and the engine create, which may name one variable of several replicas.
void check_made(const ir::Op& op);
// Unsupported for an op that only passes and the engine create: they guarantee its arguments, which a program cannot.
void refuse_engine_only(const ir::Op& op);

}  // namespace anabranch
