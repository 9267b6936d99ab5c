// What this process may use of the processor, and what the processor can do, for decisions made outside the kernels.
#pragma once

namespace anabranch {
// How many cores this process may use: the affinity mask, cut by the cgroup's CPU quota. At least 1.
int usable_cores();
// The share of one of several processes of this machine: all of those that it alone is bound to, else its part.
int cores_beside(int processes);
// Instructions for products of bfloat16 (AVX512-BF16; every processor with AMX has them, too).
bool cpu_has_bfloat16();
}  // namespace anabranch
