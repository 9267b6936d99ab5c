// An op against the declaration of its type: slots, attributes, defaults.
#pragma once
#include <string>
#include <vector>

#include "opdef/op_def.h"

namespace anabranch {

// On an op already built (programs read from files, gradient ops): fills defaults, orders slots,
// converts attribute types. Unknown slots are refused; unknown attributes are kept (files of other versions have some).
void check_op(ir::Op& op);
// What an op computes and nobody wants has a name that begins so, and is a variable of its own.
inline constexpr const char* kDiscarded = "@DISCARDED@";
inline bool is_discarded(const std::string& name) { return name.starts_with(kDiscarded); }
// A checked copy, to be run: programs come from files too, and kernels rely on what the check guarantees. Outputs that
// are only named are left out; intermediate ones that are not given, and those that older releases did not have, are
// discarded ones.
ir::OpRef checked_copy(const ir::Op& op);
// The variables that the op writes: its outputs but for those that are only named.
std::vector<std::string> written_args(const ir::Op& op);
// Refuses an op that is not as check_op leaves it: slots, arguments that must be there, attributes with their types and
// checks. For ops that passes and the engine make.
void check_made(const ir::Op& op);
// Unsupported for an op that only passes and the engine make: they vouch for its arguments, and nobody does for those
// in a program.
void refuse_engine_only(const ir::Op& op);

}  // namespace anabranch
