// Parts of declarations that many ops share.
#pragma once
#include "opdef/op_def.h"
#include "ops/declare/checks.h"

namespace anabranch {

// A rank-1 tensor of one element, Fluid's scalar.
inline Shape scalar_shape() { return Shape{1}; }

}  // namespace anabranch
