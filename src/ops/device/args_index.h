// Arguments of kernels that pick rows, and add to them, by ids, beside IndexArgs of args.h. Ids outside of the table
// are reported (code 1, detail: the place of the id).
#pragma once
#include "ops/device/args_update.h"

namespace anabranch::device {

// Bits of IndexArgs.flags: ids equal to padding read as zeros; what is reported is the id and not its place.
inline constexpr int32_t kHasPadding = 1;
inline constexpr int32_t kReportsIds = 2;

// "group_rows/<id>": ids brought together, for kernels that take RowGroups. Ids of -1 are pads and left out.
// starts: n + 1; rows, order: n; count: 1.
struct GroupRowsArgs {
  DeviceIn ids;
  DeviceOut rows, starts, order, count;
  FaultSink fault;
  int64_t n, height;
};

// What "scatter/..." does with the row of y whose id stands in groups.
enum ScatterMode : int32_t {
  kScatterAdd = 0,      // adds the rows of x to it, one after the other
  kScatterSum = 1,      // sets it to their sum
  kScatterReplace = 2,  // sets it to the last of them
  kScatterAddSum = 3,   // adds their sum to it
};

// "scatter/...": x holds a row of `width` elements for each of n ids. skipped: an id that is left alone, or -1.
struct ScatterArgs {
  DeviceIn x;
  DeviceOut y;
  RowGroups groups;
  int64_t n, width, skipped;
  int32_t mode, reserved;
};

// "merge_rows/...": y gets a row for each distinct id, ascending, behind them zeros; rows_out their ids, then -1.
struct MergeRowsArgs {
  DeviceIn x;
  DeviceOut y, rows_out;
  RowGroups groups;
  int64_t n, width;
};

// "positions/<id>": y[i] = the place, in blocks, of which the `depth` ids of i are the indices.
struct PositionsArgs {
  DeviceIn ids;
  DeviceOut y;
  FaultSink fault;
  int64_t n;
  int64_t extent[kMaxAxes];
  int32_t depth, reserved;
};

// "pick/<bytes>/<id>", "pick_grad/...": x as [outer, extent, inner], y as [outer, places, inner]. flags 1: each row has
// places of its own.
struct PickArgs {
  DeviceIn x, ids;
  DeviceOut y;
  FaultSink fault;
  int64_t outer, extent, inner, places;
  int32_t flags, reserved;
};

inline constexpr int kMostCandidates = 32;

// "multiplex/<bytes>/<id>": row r of y is row r of x[ids[r]]. "multiplex_grad/...": candidate number `own` alone.
struct MultiplexArgs {
  DeviceIn x[kMostCandidates];
  DeviceIn ids;
  DeviceOut y;
  FaultSink fault;
  int64_t rows, width;
  int32_t count, own;
};

// "shard_index/...": p of the op; size: ids of a part.
struct ShardIndexArgs {
  DeviceIn x;
  DeviceOut y;
  FaultSink fault;
  int64_t n, ids, size, part, other;
};

static_assert(is_plain_args<GroupRowsArgs> && is_plain_args<ScatterArgs> && is_plain_args<MergeRowsArgs> &&
              is_plain_args<PositionsArgs> && is_plain_args<PickArgs> && is_plain_args<MultiplexArgs> &&
              is_plain_args<ShardIndexArgs>);

}  // namespace anabranch::device
