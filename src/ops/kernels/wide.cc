#include "ops/kernels/wide.h"

#include "hwy/targets.h"

namespace anabranch {

bool has_avx2() {
#if defined(HWY_AVX2)
  return (hwy::SupportedTargets() & HWY_AVX2) != 0;
#else
  return false;
#endif
}

}  // namespace anabranch
