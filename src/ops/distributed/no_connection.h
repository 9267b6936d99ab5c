// What ops that need a peer do while this build has no connection: they say so when they run, not when a program that
// holds them is made, saved or looked at.
#pragma once
#include "opdef/op_def.h"

namespace anabranch::distributed {

inline Kernel no_connection(const KernelArgs& op) {
  return [type = op.op().type](KernelContext&) {
    AB_THROW(Unsupported, "{}: this build has no connection to other processes yet", type);
  };
}

// Peers decide what arrives: variables keep the shapes that the program declares.
inline void keep_declared(InferContext& /*c*/) {}

// Messages keep their order, and a variable that nothing has arrived for stays as it was.
inline constexpr unsigned kTalks = kOrdered | kDynamic | kMaybeUnset | kKeepsOutputs;

}  // namespace anabranch::distributed
