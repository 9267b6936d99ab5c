// How ops declare integer divisions; see also launch.h. Their kernels report a divisor of 0.
#pragma once
#include <string>

#include "ops/device/launch.h"

namespace anabranch::device {

void divided_by_zero(OpDef& def);  // .with(divided_by_zero)
// Out = f(X, Y), broadcast, by "integer_division/<function>".
DTypeFactory integer_division(const char* function);
// X@GRAD and Y@GRAD of the quotient, by "integer_division_grad/div".
DTypeFactory integer_division_grad();

}  // namespace anabranch::device
