// Arguments of update rules beside UpdateArgs of args.h.
#pragma once
#include "ops/device/args.h"

namespace anabranch::device {

// Bits of UpdateArgs.flags.
inline constexpr int32_t kOtherFloat = 1;  // rate holds float64 where param holds float32, or the reverse
inline constexpr int32_t kNextPowers = 2;  // of "update.../adam": the rate is corrected by the next powers
AB_HD constexpr int32_t other_float_read(int k) { return 4 << k; }  // kOtherFloat of reads[k], 4 of them
inline constexpr int32_t kHalfGrad = 64;       // of "update_many/..." in float32: grad holds float16,
inline constexpr int32_t kBfloat16Grad = 128;  // or bfloat16

// Equal ids of sparse rows brought together by "group_rows": `count` (one int64) distinct rows, ascending; the places
// of row k, in the order in which they stand, are order[starts[k]] up to order[starts[k + 1] - 1].
struct RowGroups {
  DeviceIn rows, starts, order, count;  // int64, but int32 places
};

// "update_touched/<rule>": only the rows that grad names are updated. "update_rows/<rule>": all rows; those that it
// lacks have gradient zero. update.grad holds a row of values for each id, update.n the elements of the parameter.
struct UpdateRowsArgs {
  UpdateArgs update;
  RowGroups groups;
  int64_t ids, height, width;
};

inline constexpr int64_t kUpdateChunk = 1024;  // elements

struct UpdateManyEntry {
  UpdateArgs update;
  DeviceIn scale;  // one number of the parameter's type, by which each gradient is divided first; may be missing
};

// "update_many/<rule>": one rule over many parameters. table: an UpdateManyEntry of each, in device memory; starts:
// count + 1 int64, the chunks of kUpdateChunk elements that lie in front of each, and all of them. "next_powers_many"
// likewise.
struct UpdateManyArgs {
  DeviceIn table, starts;
  int64_t count, chunks;
};

// "average_accumulates/...": counts are one int64 each: steps in sums 1 and 2, steps in sum 3, all steps. p: the window
// as a part of all steps (a float32).
struct AverageArgs {
  DeviceIn param;
  DeviceOut sums[3], counts[3];
  int64_t n, least, most;
  double p[kMaxNumbers];
};

static_assert(is_plain_args<RowGroups> && is_plain_args<UpdateRowsArgs> && is_plain_args<UpdateManyEntry> &&
              is_plain_args<UpdateManyArgs> && is_plain_args<AverageArgs>);

}  // namespace anabranch::device
