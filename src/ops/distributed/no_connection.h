// What ops that need a peer do while this build has no connection: they say so when they run, not when a program that
// holds them is made, saved or looked at.
#pragma once
#include "ops/distributed/declare.h"

namespace anabranch::distributed {

inline Kernel no_connection(const KernelArgs& op) {
  return [type = op.op().type](KernelContext&) {
    AB_THROW(Unsupported, "{}: this build has no connection to other processes yet", type);
  };
}

}  // namespace anabranch::distributed
