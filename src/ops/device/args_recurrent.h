// Arguments of kernels of recurrences. Rows are those of one step, or of all steps in order; a missing previous state
// is zero.
#pragma once
#include "ops/device/args.h"

namespace anabranch::device {

// "gather_rows/...": y[p] = x[places[p]] + bias. A negative place (int64) selects row -1 - place of `first` instead, or
// zeros if `first` is missing. places missing: p itself. bias may be missing. add: adds to y.
struct GatherRowsArgs {
  DeviceIn x, places, first, bias;
  DeviceOut y;
  int64_t rows, width, row_x, row_y;  // row_...: elements from row to row
  int32_t add, reserved;
};

// "scatter_rows/...": y[places[p]] = x[p]; all places differ.
struct ScatterRowsArgs {
  DeviceIn x, places;
  DeviceOut y;
  int64_t rows, width;
};

struct UnitRule {
  int64_t units;
};

// "keep_rows/...": y = share x + (1 - share) before, with one share per row. "keep_rows_grad/...": x is the gradient of
// what is kept; its share is added to that of the new state, `direct`, in y, and the rest to dbefore.
struct KeepRowsArgs {
  DeviceIn shares, x, before, direct;
  DeviceOut y, dbefore;
  int64_t rows;
  UnitRule rule;
};

// "move_block/...": y[r][j] = x[r][j] + more, or adds to y. x may be missing: zeros. step_x 0: one number per row.
// "sum_block/...": y[0] = the sum of x[r][j], or adds to y.
struct BlockArgs {
  DeviceIn x;
  DeviceOut y;
  int64_t rows, width, row_x, row_y, step_x;
  double more;
  int32_t add, reserved;
};

// "column_sums/...": y[j] = the sum over the rows of x[row][j] by[row][j], or of x[row][j] if by is missing.
struct ColumnSumsArgs {
  DeviceIn x, by;
  DeviceOut y;
  int64_t rows, width, row_x, row_by;
};

// Activations by their numbers in ops/sequence/acts.h. clip 0: no clipping.
// "clipped_act/...": x = f(x), clipped to [-clip, clip]. "clipped_act_grad/...": converts dx, the gradient of y, to
// that of x.
struct ClippedActRule {
  int64_t units;
  double clip;
  int32_t act, reserved;
};
struct ClippedActArgs {
  DeviceIn y;
  DeviceOut x;
  int64_t rows;
  ClippedActRule rule;
};

struct LstmRule {
  int64_t units;
  double clip;         // of the cell
  double forget_bias;  // added to the sum of the forget gate
  int32_t places[4];   // positions of candidate, input, forget and output gate among the gates of a row
  int32_t candidate, gate, cell, reserved;
};

// "lstm_cell/...": gates [rows, 4 units] hold sums and are replaced by candidate and gates. peepholes [3 units]:
// weights of the cell in input, forget and output gate; may be missing.
struct LstmCellArgs {
  DeviceOut gates;
  DeviceIn before, peepholes;  // before: the cell
  DeviceOut cell, hidden;
  int64_t rows, row_hidden;
  LstmRule rule;
};

// "lstm_cell_grad/...": dcell comes from later steps. Sets dgates and adds to dbefore, which may be missing. factors
// [rows, units] of the gradient of the cell may be missing.
struct LstmCellGradArgs {
  DeviceIn gates, cell, before, peepholes, dhidden, dcell, factors;
  DeviceOut dgates, dbefore;
  int64_t rows, row_hidden;  // row_hidden: of dhidden
  LstmRule rule;
};

struct GruRule {
  int64_t units;
  int32_t gate, candidate, origin, reserved;  // origin: the update gate weights the old state
};

// "gru_gates/...": gates [rows, 3 units] - update gate, reset gate, candidate - hold sums; replaces those of both
// gates, and sets left = reset gate times before. "gru_state/...": the candidate and the new state.
struct GruArgs {
  DeviceOut gates;
  DeviceIn before;
  DeviceOut left, state;
  int64_t rows;
  GruRule rule;
};

// "gru_state_grad/...": sets the gradients of the sums of update gate and candidate, and that of the reset gate if
// there is no previous state. "gru_reset_grad/...": that of the reset gate, from that of left. Both add to dbefore,
// which may be missing in the first.
struct GruGradArgs {
  DeviceIn gates, before, dstate, dleft;
  DeviceOut dgates, dbefore;
  int64_t rows;
  GruRule rule;
};

static_assert(is_plain_args<GatherRowsArgs> && is_plain_args<ScatterRowsArgs> && is_plain_args<KeepRowsArgs> &&
              is_plain_args<BlockArgs> && is_plain_args<ColumnSumsArgs> && is_plain_args<ClippedActArgs>);
static_assert(is_plain_args<LstmCellArgs> && is_plain_args<LstmCellGradArgs> && is_plain_args<GruArgs> &&
              is_plain_args<GruGradArgs>);

}  // namespace anabranch::device
