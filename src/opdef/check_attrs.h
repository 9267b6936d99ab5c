// The attributes of an op against their declarations, for ops that scripts build by hand and whose slots are
// incomplete.
#pragma once
#include "ir/op.h"

namespace anabranch {

// Fills defaults and converts types, as check_op does. Raises where an attribute does not meet its declaration.
void check_attrs(ir::Op& op);

}  // namespace anabranch
