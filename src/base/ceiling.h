// Peak rates of one core of this machine, measured once per process: the reference for profiles. The first call takes a
// tenth of a second. Any thread; concurrent callers wait for the measurement.
#pragma once

namespace anabranch {

struct Ceiling {
  double flops_per_s = 0;  // float32 multiply-adds, each counted as two
  double bytes_per_s = 0;  // a[i] = b[i] + s * c[i] on arrays larger than any cache: two reads and a write
};

const Ceiling& core_ceiling();

}  // namespace anabranch
