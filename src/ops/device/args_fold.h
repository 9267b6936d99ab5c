// Arguments of kernels that fold elements; see also args.h.
#pragma once
#include "ops/device/args.h"

namespace anabranch::device {

// "fold_axes/...": y[row] = the fold of x over the axes `folded`, for each element of the axes `kept`; y is dense.
// Operand of axes: x.
struct FoldAxesArgs {
  DeviceIn x;
  DeviceOut y;
  Axes<1> kept, folded;
};

// "fold_axes_grad/...": dx, dense, from x, the folded out and dout, as far as a term reads them. Operands of axes: x
// (and dx), out (and dout). p: the number of elements folded to one.
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

// "accuracy/<index>/<label>": indices [samples, k], one label per sample. Outputs that are not requested are missing.
struct AccuracyArgs {
  DeviceIn indices, label;
  DeviceOut accuracy, correct, total;
  int64_t samples, k;
};

static_assert(is_plain_args<FoldAxesArgs> && is_plain_args<FoldAxesGradArgs> && is_plain_args<NormArgs> &&
              is_plain_args<AccuracyArgs>);

}  // namespace anabranch::device
