// What the processor can do, for decisions made outside the kernels.
#pragma once

namespace anabranch {
// Instructions for products of bfloat16 (AVX512-BF16; every processor with AMX has them, too).
bool cpu_has_bfloat16();
}  // namespace anabranch
