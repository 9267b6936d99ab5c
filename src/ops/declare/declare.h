// Pieces of declarations that many ops share.
#pragma once
#include <initializer_list>
#include <string>

#include "opdef/op_def.h"
#include "ops/declare/checks.h"

namespace anabranch {

// Boolean attributes that choose a library in the original.
inline OpDef& ignored_flags(OpDef& op, std::initializer_list<const char*> names) { return op.ignores(names); }

// A rank-1 tensor of one element, Fluid's scalar.
inline Shape scalar_shape() { return Shape{1}; }

}  // namespace anabranch
