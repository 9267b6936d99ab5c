// Arguments of kernels over many lookups at once. A lookup with offsets (int64, number of sequences + 1) is pooled: one
// row per sequence. mode: SequencePooling of args_sequence.h.
#pragma once
#include "ops/device/args_sequence.h"

namespace anabranch::device {

inline constexpr int kMostLookups = 32;  // per launch; limited by the size of a GPU's kernel arguments

// Bits of flags.
inline constexpr int32_t kIdsOf32 = 1;
inline constexpr int32_t kSkipsPadding = 2;  // the id `padding` reads as zeros and gets no gradient

struct LookupPart {
  DeviceIn x;             // the table or, without ids, rows as wide as the part
  DeviceIn ids, offsets;  // per_row ids are side by side in a row of y
  int64_t height, width;  // of the table
  int64_t per_row, padding;
  int64_t column;  // first column of the part in a row of y
  double empty;    // value of a sequence without ids
  int32_t flags, mode;
};

// "gather_parts/...": row r of y, `stride` wide, has the parts side by side, together `columns` from first_column on.
// Ids outside of a table are reported (code 1, the id) and read as zeros.
struct GatherPartsArgs {
  LookupPart parts[kMostLookups];
  DeviceOut y;
  FaultSink fault;
  int64_t rows, stride, first_column, columns;
  int32_t count, reserved;
};

struct RowSource {
  DeviceIn ids, offsets;
  DeviceIn grad;  // rows `stride` wide, which hold the gradients of per_row ids from `column` on
  int64_t begin;  // index of its first id among those of all sources
  int64_t stride, column, per_row, padding, sequences;
  int32_t flags, mode;
};

// "source_rows/...": the ids of all sources, one after another, -1 for padding, and a row of gradients for each.
struct SourceRowsArgs {
  RowSource sources[kMostLookups];
  DeviceOut ids, values;
  int64_t n, width;
  int32_t count, reserved;
};

static_assert(is_plain_args<GatherPartsArgs> && is_plain_args<SourceRowsArgs>);
static_assert(sizeof(GatherPartsArgs) <= 4096 && sizeof(SourceRowsArgs) <= 4096);  // limit of a GPU's kernel arguments

}  // namespace anabranch::device
