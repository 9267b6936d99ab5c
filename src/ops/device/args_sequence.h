// Arguments of kernels over sequences. offsets: int64, number of sequences + 1, in device memory.
#pragma once
#include "ops/device/args.h"

namespace anabranch::device {

enum SequencePooling : int32_t { kPoolSum, kPoolAverage, kPoolSqrt, kPoolMax, kPoolLast, kPoolFirst };

// "sequence_pool/...": y [sequences, width], index (int32, only for kPoolMax) likewise. "sequence_pool_grad/...": x is
// Out@GRAD, index_in the output of the forward kernel, y X@GRAD with `rows` rows.
struct SequencePoolArgs {
  DeviceIn x, offsets, index_in;
  DeviceOut y, index;
  int64_t sequences, rows, width;
  double pad;  // value of empty sequences
  int32_t mode, reserved;
};

// "context/...": columns [rows, length width]: the rows around each row side by side; outside of its sequence rows of
// padding or zeros. "context_grad/...": x is the gradient of columns, dx and dpadding may be missing.
struct ContextArgs {
  DeviceIn x, offsets, padding;
  DeviceOut columns;  // for the gradient: dx
  DeviceOut dpadding;
  int64_t sequences, rows, width, length, start;
};

// "sequence_softmax/...": over the numbers of each sequence. "sequence_softmax_grad/...": x is the softmax.
struct SequenceSoftmaxArgs {
  DeviceIn x, dy, offsets;
  DeviceOut y;
  int64_t sequences;
};

// "sum_rows/...": row r of y is the sum of the rows places[starts[r]] to places[starts[r + 1] - 1] (int64) of x, in
// this order.
struct SumRowsArgs {
  DeviceIn x, starts, places;
  DeviceOut y;
  int64_t rows, width;
};

// "row_conv/...": y[t] = the sum over j < taps of filter[j] x[t + j], within the sequence. "row_conv_grad/...": y is
// X@GRAD; it or dfilter may be missing.
struct RowConvArgs {
  DeviceIn x, filter, dout, offsets;
  DeviceOut y, dfilter;
  int64_t sequences, rows, width, taps;
};

// "position_encoding/...": y = alpha x + beta table[position in the sequence]. table: double, [longest sequence,
// width].
struct EncodingArgs {
  DeviceIn x, offsets, table;
  DeviceOut y;
  int64_t sequences, rows, width;
  double alpha, beta;
};

static_assert(is_plain_args<RowConvArgs> && is_plain_args<EncodingArgs>);
static_assert(is_plain_args<SequencePoolArgs> && is_plain_args<ContextArgs> && is_plain_args<SequenceSoftmaxArgs> &&
              is_plain_args<SumRowsArgs>);

}  // namespace anabranch::device
