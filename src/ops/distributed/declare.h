// Shared declarations of the ops of clusters.
#pragma once
#include "opdef/op_def.h"

namespace anabranch::distributed {

// Peers determine the received shapes: variables keep the shapes that the program declares.
inline void keep_declared(InferContext& /*c*/) {}

// Messages keep their order, and a variable that received nothing keeps its value.
inline constexpr unsigned kTalks = kOrdered | kDynamic | kMaybeUnset | kKeepsOutputs;

}  // namespace anabranch::distributed
