// What the ops of clusters share in their declarations.
#pragma once
#include "opdef/op_def.h"

namespace anabranch::distributed {

// Peers decide what arrives: variables keep the shapes that the program declares.
inline void keep_declared(InferContext& /*c*/) {}

// Messages keep their order, and a variable that nothing has arrived for stays as it was.
inline constexpr unsigned kTalks = kOrdered | kDynamic | kMaybeUnset | kKeepsOutputs;

}  // namespace anabranch::distributed
