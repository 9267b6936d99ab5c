// Arguments of update rules; see also UpdateArgs of args.h.
#pragma once
#include "ops/device/args.h"

namespace anabranch::device {

// Bits of UpdateArgs.flags.
inline constexpr int32_t kOtherFloat = 1;  // the dtypes of rate and param are float64 and float32, in either order
inline constexpr int32_t kNextPowers = 2;  // for "update.../adam": corrects the rate by the next powers
AB_HD constexpr int32_t other_float_read(int k) { return 4 << k; }  // kOtherFloat of reads[k], 4 of them
inline constexpr int32_t kHalfGrad = 64;       // for "update_many/..." in float32: grad holds float16,
inline constexpr int32_t kBfloat16Grad = 128;  // or bfloat16

// Equal ids of sparse rows, grouped by "group_rows": `count` (one int64) distinct rows, ascending; the positions of row
// k, in order of occurrence, are order[starts[k]] to order[starts[k + 1] - 1].
struct RowGroups {
  DeviceIn rows, starts, order, count;  // int64, except int32 places
};

// "update_touched/<rule>": updates only the rows that grad names. "update_rows/<rule>": updates all rows; those without
// an id have a zero gradient. update.grad holds a row of values per id, update.n the number of elements of the
// parameter.
struct UpdateRowsArgs {
  UpdateArgs update;
  RowGroups groups;
  int64_t ids, height, width;
};

inline constexpr int64_t kUpdateChunk = 1024;  // elements

struct UpdateManyEntry {
  UpdateArgs update;
  DeviceIn scale;  // one number of the parameter's type, the divisor of every gradient; may be missing
};

// "update_many/<rule>": one rule for many parameters. table: one UpdateManyEntry each, in device memory; starts: count
// + 1 int64, the running total of chunks of kUpdateChunk elements. "next_powers_many" likewise.
struct UpdateManyArgs {
  DeviceIn table, starts;
  int64_t count, chunks;
};

// "average_accumulates/...": counts are one int64 each: steps in sums 1 and 2, steps in sum 3, all steps. p: the window
// as a fraction of all steps (a float32).
struct AverageArgs {
  DeviceIn param;
  DeviceOut sums[3], counts[3];
  int64_t n, least, most;
  double p[kMaxNumbers];
};

static_assert(is_plain_args<RowGroups> && is_plain_args<UpdateRowsArgs> && is_plain_args<UpdateManyEntry> &&
              is_plain_args<UpdateManyArgs> && is_plain_args<AverageArgs>);

}  // namespace anabranch::device
