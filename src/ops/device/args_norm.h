// Arguments of the kernels of ops/nn/batch_norm_sums.cu.
#pragma once
#include "ops/device/args.h"

namespace anabranch::device {

// Tensors are [outer, channels, inner], sums [2 channels + 1] of float64. Optional operands may be missing.
// "batch_norm_sums": sums of x, or of dy with `used` and `inverse`.
// "batch_norm_by_sums": y, used, inverse, mean_out and variance_out, by sums_in.
// "batch_norm_grad_by_sums": y is X@GRAD, by sums_in; dscale and dbias of sums_own.
struct NormSumsArgs {
  DeviceIn x, dy, scale, bias, mean, variance, momentum_in, used_in, inverse_in, sums_in, sums_own;
  DeviceOut y, mean_out, variance_out, used, inverse, dscale, dbias, sums;
  int64_t outer, channels, inner;
  double epsilon, momentum;
};

static_assert(is_plain_args<NormSumsArgs>);

}  // namespace anabranch::device
