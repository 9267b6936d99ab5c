#include "ops/kernels/wide.h"

#include "hwy/targets.h"

namespace anabranch {

bool has_avx2() {
#if defined(HWY_AVX2)
  // Cached: Highway queries the processor each time, which in a virtual machine traps to the host.
  static const bool has = (hwy::SupportedTargets() & HWY_AVX2) != 0;
  return has;
#else
  return false;
#endif
}

}  // namespace anabranch
