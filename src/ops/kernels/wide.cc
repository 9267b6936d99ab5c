#include "ops/kernels/wide.h"

#include "hwy/targets.h"

namespace anabranch {

bool has_avx2() {
#if defined(HWY_AVX2)
  // Asked once: Highway asks the processor each time, and in a virtual machine that is a question to its host.
  static const bool has = (hwy::SupportedTargets() & HWY_AVX2) != 0;
  return has;
#else
  return false;
#endif
}

}  // namespace anabranch
