// What ops do whose part is done otherwise here: they say so when they run, not when a program that holds them is made,
// saved or looked at.
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
