// Ops in the form of other versions of Fluid 1.x. Missing or differently typed parts are read as 1.8.5 would have
// written them; this describes the changes.
#pragma once
#include <string>
#include <vector>

#include "ir/op.h"

namespace anabranch {

// A number in place of a declared list becomes a list of one; any other value is unchanged.
Attr as_declared_now(const Attr& value, AttrType declared);

// The differences of the op from 1.8.5's form, and their interpretation: "attribute is_test: INT, taken as BOOLEAN".
// Empty for ops of 1.8.5 and for unsupported types.
std::vector<std::string> old_forms(const ir::Op& op);

}  // namespace anabranch
