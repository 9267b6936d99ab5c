// Arguments of kernels that work row by row; see also RowArgs of args.h.
#pragma once
#include "ops/device/args.h"

namespace anabranch::device {

// Bits of ClassArgs.flags.
inline constexpr int32_t kIgnoredHaveNoGradient = 1;

// "softmax/..." and similar kernels, cross entropies: tensors [outer, classes, inner], one value per sample [outer,
// inner]. Operands that an op does not have are missing. Labels outside of [0, classes) other than `ignored` are
// reported (code 1, detail: the sample) and treated as ignored.
struct ClassArgs {
  DeviceIn x, label, dy, own;  // own: cross_entropy2's MatchX
  DeviceOut y, loss;           // loss: or MatchX
  FaultSink fault;
  int64_t outer, classes, inner, ignored;
  int32_t flags, reserved;
};

// "layer_norm/...", "layer_norm_grad/...": x [rows, width]. Scale, bias and gradients that are not requested may be
// missing.
struct LayerNormArgs {
  DeviceIn x, scale, bias, dy, mean_in, variance_in;
  DeviceOut y, mean, variance;  // for the gradient: dx, dscale, dbias
  int64_t rows, width;
  double epsilon;
};

// Bits of GroupNormArgs.flags.
inline constexpr int32_t kChannelsLast = 1;
inline constexpr int32_t kInverseDeviation = 2;  // variance holds 1 / sqrt(variance + epsilon)
inline constexpr int32_t kNotCentered = 4;       // for the gradient: leaves out the mean of its terms
inline constexpr int32_t kFromNormalized = 8;    // for the gradient: x is Y

// "group_norm/...", "group_norm_grad/...": a sample as [channels, inner], or [inner, channels].
struct GroupNormArgs {
  DeviceIn x, scale, bias, dy, mean_in, variance_in;
  DeviceOut y, mean, variance;  // for the gradient: dx, dscale, dbias
  int64_t samples, channels, inner, groups;
  double epsilon;
  int32_t flags, reserved;
};

// "log_loss", "sigmoid_cross_entropy", "label_smooth" and similar losses with their gradients: elementwise. prior of
// label_smooth: [classes]. p: the parameters of the loss; for sigmoid_cross_entropy the ignored label. flags 1: divides
// by the number of labels that are not ignored.
struct LossArgs {
  DeviceIn x, label, dy, prior;
  DeviceOut y;
  int64_t n, classes;
  double p[kMaxNumbers];
  int32_t flags, reserved;
};

// "top_k/...", "argsort/...", and "selected_grad": lines [outer, extent, inner], the first k of each. flags 1: largest
// first. The gradient checks its places (code 1, detail: the place).
struct OrderArgs {
  DeviceIn x, places_in;
  DeviceOut y, places;
  FaultSink fault;
  int64_t outer, extent, inner, k;
  int32_t flags, reserved;
};

// "prelu/...", "prelu_grad/...": x [outer, alphas, inner]; if `alphas` is 1 all elements share one alpha.
struct PreluArgs {
  DeviceIn x, alpha, dy;
  DeviceOut y, dalpha;
  int64_t outer, alphas, inner;
};

// "maxout_grad/...": x and dx as [outer, width, inner], out and dout as [outer, inner]. "maxout/..." takes FoldArgs.
struct MaxoutGradArgs {
  DeviceIn x, out, dout;
  DeviceOut dx;
  int64_t outer, width, inner;
};

// "dot/...", "cos_sim/..." and gradients: x [rows, width]; y likewise or, if flags has bit 1, one row for all.
struct PairArgs {
  DeviceIn x, y, dout, out_in, x_norm_in, y_norm_in;
  DeviceOut out, x_norm, y_norm;  // for the gradient: dx, dy
  int64_t rows, width;
  int32_t flags, reserved;
};

// "data_norm/...": x, y [rows, columns], all others [columns]; scale_w and bias may be missing. slot: columns of a
// slot, whose first one counts its shows; 0: no slots. "data_norm_grad/...": y is X@GRAD; each of the results may be
// missing.
struct DataNormArgs {
  DeviceIn x, size, sum, square, scale_w, bias, means_in, scales_in, dy;
  DeviceOut y, means, scales, dsize, dsum, dsquare, dscale_w, dbias;
  int64_t rows, columns, slot;
  double epsilon;
};

static_assert(is_plain_args<DataNormArgs>);

// "lrn/...", "lrn_grad/...": x [outer, channels, inner], sums over n neighboring channels. y: for the gradient dx. p:
// k, alpha, beta.
struct LrnArgs {
  DeviceIn x, out, mid_in, dy;
  DeviceOut y, mid;
  int64_t outer, channels, inner, n;
  double p[kMaxNumbers];
};

// "affine_channel/...", "affine_channel_grad/...": x [outer, channels, inner]. y: for the gradient dx.
struct ChannelArgs {
  DeviceIn x, scale, bias, dy;
  DeviceOut y, dscale, dbias;
  int64_t outer, channels, inner;
};

static_assert(is_plain_args<ClassArgs> && is_plain_args<LayerNormArgs> && is_plain_args<GroupNormArgs> &&
              is_plain_args<LossArgs> && is_plain_args<OrderArgs> && is_plain_args<PreluArgs> &&
              is_plain_args<MaxoutGradArgs> && is_plain_args<PairArgs> && is_plain_args<LrnArgs> &&
              is_plain_args<ChannelArgs>);

}  // namespace anabranch::device
