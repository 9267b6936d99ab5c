// Arguments of kernels that fold elements to fewer ones, beside those of args.h.
#pragma once
#include "ops/device/args.h"

namespace anabranch::device {

// "fold_axes/...": y[row] = the fold of x over the axes `folded`, for each element of the axes `kept`, which y holds
// densely. Operand of axes: x.
struct FoldAxesArgs {
  DeviceIn x;
  DeviceOut y;
  Axes<1> kept, folded;
};

// "fold_axes_grad/...": dx, dense, from x, the folded out and dout, of which a term reads what it wants. Operands of
// axes: x (and dx), out (and dout). p: how many elements were folded to one.
struct FoldAxesGradArgs {
  DeviceIn x, out, dout;
  DeviceOut dx;
  Axes<2> axes;
  double p[kMaxNumbers];
};

// "norm/...", "norm_grad/...": x as [outer, width, inner], lengths along width, [outer, inner]. p: epsilon.
struct NormArgs {
  DeviceIn x, dy, length_in;
  DeviceOut y, length;
  int64_t outer, width, inner;
  double p[kMaxNumbers];
};

// "accuracy/<index>/<label>": indices [samples, k], one label for each sample. Missing outputs are not wanted.
struct AccuracyArgs {
  DeviceIn indices, label;
  DeviceOut accuracy, correct, total;
  int64_t samples, k;
};

static_assert(is_plain_args<FoldAxesArgs> && is_plain_args<FoldAxesGradArgs> && is_plain_args<NormArgs> &&
              is_plain_args<AccuracyArgs>);

}  // namespace anabranch::device
