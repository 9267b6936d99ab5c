#include "base/cpu.h"

namespace anabranch {
bool cpu_has_bfloat16() { return __builtin_cpu_supports("avx512bf16") != 0; }
}  // namespace anabranch
