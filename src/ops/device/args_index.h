// Arguments of kernels that gather rows by ids and add to them; see also IndexArgs of args.h. Ids outside of the table
// are reported (code 1, detail: the position of the id).
#pragma once
#include "ops/device/args_update.h"

namespace anabranch::device {

// Bits of IndexArgs.flags: ids equal to padding read as zeros; reports the id instead of its position.
inline constexpr int32_t kHasPadding = 1;
inline constexpr int32_t kReportsIds = 2;

// "group_rows/<id>": groups equal ids, for kernels that take RowGroups. Ids of -1 are padding and skipped. starts: n +
// 1; rows, order: n; count: 1.
struct GroupRowsArgs {
  DeviceIn ids;
  DeviceOut rows, starts, order, count;
  FaultSink fault;
  int64_t n, height;
};

// The action of "scatter/..." on the row of y for a group's id.
enum ScatterMode : int32_t {
  kScatterAdd = 0,      // adds the rows of x to it, one after another
  kScatterSum = 1,      // sets it to their sum
  kScatterReplace = 2,  // sets it to the last of them
  kScatterAddSum = 3,   // adds their sum to it
};

// "scatter/...": x holds a row of `width` elements for each of n ids. skipped: an id to ignore, or -1.
struct ScatterArgs {
  DeviceIn x;
  DeviceOut y;
  RowGroups groups;
  int64_t n, width, skipped;
  int32_t mode, reserved;
};

// "merge_rows/...": y gets a row for each distinct id, ascending, followed by zeros; rows_out their ids, then -1.
struct MergeRowsArgs {
  DeviceIn x;
  DeviceOut y, rows_out;
  RowGroups groups;
  int64_t n, width;
};

// "positions/<id>": y[i] = the position, in blocks, whose indices are the `depth` ids of i.
struct PositionsArgs {
  DeviceIn ids;
  DeviceOut y;
  FaultSink fault;
  int64_t n;
  int64_t extent[kMaxAxes];
  int32_t depth, reserved;
};

// "pick/<bytes>/<id>", "pick_grad/...": x as [outer, extent, inner], y as [outer, places, inner]. flags 1: each row has
// different places.
struct PickArgs {
  DeviceIn x, ids;
  DeviceOut y;
  FaultSink fault;
  int64_t outer, extent, inner, places;
  int32_t flags, reserved;
};

inline constexpr int kMostCandidates = 32;

// "multiplex/<bytes>/<id>": row r of y is row r of x[ids[r]]. "multiplex_grad/...": candidate number `own` only.
struct MultiplexArgs {
  DeviceIn x[kMostCandidates];
  DeviceIn ids;
  DeviceOut y;
  FaultSink fault;
  int64_t rows, width;
  int32_t count, own;
};

// "shard_index/...": p of the op; size: ids per shard.
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
