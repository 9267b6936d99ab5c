// Arguments of kernels over sequences. offsets: int64, one more than there are sequences, in device memory.
#pragma once
#include "ops/device/args.h"

namespace anabranch::device {

enum SequencePooling : int32_t { kPoolSum, kPoolAverage, kPoolSqrt, kPoolMax, kPoolLast, kPoolFirst };

// "sequence_pool/...": y [sequences, width], index (int32, of kPoolMax alone) likewise. "sequence_pool_grad/...": x is
// Out@GRAD, index_in what the forward kernel wrote, y X@GRAD of `rows` rows.
struct SequencePoolArgs {
  DeviceIn x, offsets, index_in;
  DeviceOut y, index;
  int64_t sequences, rows, width;
  double pad;  // of empty sequences
  int32_t mode, reserved;
};

// "context/...": columns [rows, length width], the rows around each row side by side, and outside of its sequence rows
// of padding or zeros. "context_grad/...": x is the gradient of columns, dx and dpadding may be missing.
struct ContextArgs {
  DeviceIn x, offsets, padding;
  DeviceOut columns;  // of the gradient: dx
  DeviceOut dpadding;
  int64_t sequences, rows, width, length, start;
};

static_assert(is_plain_args<SequencePoolArgs> && is_plain_args<ContextArgs>);

}  // namespace anabranch::device
