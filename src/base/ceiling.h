// What one core of this machine can do at best, measured once in a process: the yardstick of profiles. A tenth of a
// second at the first call; any thread, callers wait for each other.
#pragma once

namespace anabranch {

struct Ceiling {
  double flops_per_s = 0;  // float32 multiply-adds, each counted as two
  double bytes_per_s = 0;  // a[i] = b[i] + s * c[i] on arrays that no cache holds: two reads and a write
};

const Ceiling& core_ceiling();

}  // namespace anabranch
