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

// "keep_rows/...": kept = share fresh + (1 - share) before, with one share per row. "keep_rows_grad/...": x is the
// gradient of kept; adds to the gradients of fresh and before.
struct KeepRowsArgs {
  DeviceIn shares, x, before;
  DeviceOut y, dbefore;  // y: kept, or the gradient of fresh
  int64_t rows, width;
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
struct ClippedActArgs {
  DeviceIn y;
  DeviceOut x;
  int64_t n;
  double clip;
  int32_t act, reserved;
};

struct LstmRule {
  int64_t units;
  double clip;        // of the cell
  int32_t places[4];  // positions of candidate, input, forget and output gate among the gates of a row
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

// "lstm_cell_grad/...": dcell comes from later steps. Sets dgates and adds to dbefore, which may be missing.
struct LstmCellGradArgs {
  DeviceIn gates, cell, before, peepholes, dhidden, dcell;
  DeviceOut dgates, dbefore;
  int64_t rows, row_dhidden;
  LstmRule rule;
};

// "gru_gates/...": gates [rows, 3 units] - update gate, reset gate, candidate - hold sums; replaces those of both
// gates, and sets left = reset gate times before. "gru_state/...": the candidate and the new state.
struct GruArgs {
  DeviceOut gates;
  DeviceIn before;
  DeviceOut left, state;
  int64_t rows, units;
  int32_t gate, candidate, origin, reserved;  // origin: the update gate weights the old state
};

// "gru_state_grad/...": sets the gradients of the sums of update gate and candidate, and that of the reset gate if
// there is no previous state. "gru_reset_grad/...": that of the reset gate, from that of left. Both add to dbefore,
// which may be missing in the first.
struct GruGradArgs {
  DeviceIn gates, before, dstate, dleft;
  DeviceOut dgates, dbefore;
  int64_t rows, units;
  int32_t gate, candidate, origin, reserved;
};

// "lstm_unit/...": [i, f, o, g] = x; cell = before sigmoid(f + forget_bias) + sigmoid(i) tanh(g), hidden = sigmoid(o)
// tanh(cell). "lstm_unit_grad/...": each of the gradients may be missing.
struct LstmUnitArgs {
  DeviceIn x, before;
  DeviceOut cell, hidden;
  int64_t rows, units;
  double forget_bias;
};
struct LstmUnitGradArgs {
  DeviceIn x, before, cell, dcell, dhidden;
  DeviceOut dx, dbefore;
  int64_t rows, units;
  double forget_bias;
};

static_assert(is_plain_args<GatherRowsArgs> && is_plain_args<ScatterRowsArgs> && is_plain_args<KeepRowsArgs> &&
              is_plain_args<BlockArgs> && is_plain_args<ColumnSumsArgs> && is_plain_args<ClippedActArgs>);
static_assert(is_plain_args<LstmCellArgs> && is_plain_args<LstmCellGradArgs> && is_plain_args<GruArgs> &&
              is_plain_args<GruGradArgs> && is_plain_args<LstmUnitArgs> && is_plain_args<LstmUnitGradArgs>);

}  // namespace anabranch::device
