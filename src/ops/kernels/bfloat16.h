// Rounds float32 to bfloat16, for the operands of products that are summed in float32.
#pragma once
#include <cstdint>
#include <vector>

#include "opdef/kernel_context.h"

namespace anabranch {

// To nearest, ties to even; NaN stays NaN. Resizes `out` if needed.
void round_to_bfloat16(const KernelContext& c, const float* x, int64_t n, std::vector<uint16_t>& out);

}  // namespace anabranch
