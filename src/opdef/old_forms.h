// Ops as other versions of Fluid 1.x wrote them. What they leave out, or say with another type, is read as 1.8.5 would
// have written it; this says what that was.
#pragma once
#include <string>
#include <vector>

#include "ir/op.h"

namespace anabranch {

// A number where a list is declared, as a list of one; any other value as it is.
Attr as_declared_now(const Attr& value, AttrType declared);

// What of the op is not as 1.8.5 writes it, and what it is taken for: "attribute is_test: INT, taken as BOOLEAN". Empty
// for ops of 1.8.5 and for types that are not offered.
std::vector<std::string> old_forms(const ir::Op& op);

}  // namespace anabranch
