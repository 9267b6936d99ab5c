// A kernel for ops whose work another part of the engine does: it fails when it runs, so programs that contain it can
// still be built, saved and inspected.
#pragma once
#include "ops/distributed/declare.h"

namespace anabranch::distributed {

inline KernelFactory not_here(const char* instead) {
  return [instead](const KernelArgs& op) -> Kernel {
    return [instead, type = op.op().type](KernelContext&) {
      AB_THROW(Unsupported, "{} does not run by itself: {}", type, instead);
    };
  };
}

}  // namespace anabranch::distributed
