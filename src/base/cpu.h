// The cores and instruction sets that this process may use, for decisions made outside the kernels.
#pragma once

namespace anabranch {
// Number of cores this process may use: the affinity mask, limited by the cgroup's CPU quota. At least 1.
int usable_cores();
// Cores for one of several processes of this machine: all of them if only this process is bound to them, else its
// share.
int cores_per_process(int processes);
// Threads for one replica that the user asked for: FLAGS_paddle_num_threads if it is set, else the first number of
// OMP_NUM_THREADS. 0: neither is set.
int threads_asked_for();
// Instructions for products of bfloat16 (AVX512-BF16, which every processor with AMX has).
bool cpu_has_bfloat16();
// Instructions for products of 8-bit integers that do not saturate their sums (VNNI).
bool cpu_has_int8();
}  // namespace anabranch
