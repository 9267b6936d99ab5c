// Descriptions that library calls are planned with; see also GemmDesc of args.h. Images and volumes are [batch,
// channels, depth, height, width] as stored, or with the channels last; an image is a volume of depth 1.
#pragma once
#include "ops/device/args.h"

namespace anabranch::device {

// A window that slides over the last three axes. before, after: padding before and after `in`, in elements.
struct WindowDesc {
  int64_t in[3], out[3], kernel[3], stride[3], dilation[3], before[3], after[3];
  int32_t axes, channels_last;  // axes: 2 for images, 3 for volumes
};

enum ConvPassKind : int32_t { kConvForward, kConvBackwardData, kConvBackwardFilter };

// "conv": a convolution (a cross-correlation), or one of its gradients. Filters are [out_channels, in_channels /
// groups, depth, height, width] in both layouts. Operands, the third one is the result:
//   forward: images, filter, output      data: gradient of the output, filter, gradient of the images
//   filter: images, gradient of the output, gradient of the filter
struct ConvDesc {
  WindowDesc window;
  int64_t batch, in_channels, out_channels, groups;
  int32_t pass, rounded;  // rounded: operands may be rounded to bfloat16
  int32_t dtype, reserved;
};

// "pool/max", "pool/avg": result = out. "pool_grad/max", "pool_grad/avg": result = the gradient of x. Kernels of
// ops/nn/pool.cu: libraries have no adaptive windows and do not define which of equal maxima gets the gradient. Here it
// is the first; averages divide by the number of elements inside the image, unless count_padding.
struct PoolArgs {
  DeviceIn x, out, dout;  // operands that are not read are missing
  DeviceOut result;
  WindowDesc window;  // adaptive: windows divide `in` evenly, and kernel and stride are ignored
  int64_t batch, channels;
  int32_t adaptive, count_padding;
};

// "batch_norm": tensors [outer, channels, inner]. Operands: x, scale, bias, mean, variance, y, mean_out, variance_out
// (either may be missing), mean used, inverse deviation used. fixed: uses mean and variance instead of those of the
// batch and does not move them. "batch_norm_grad": x, scale, gradient of y, saved mean, saved inverse deviation, mean,
// variance (either may be missing; they are used if fixed), gradients of x, scale, bias (each may be missing). For a
// 16-bit dtype, x, y and their gradients have it; all operands of channels are float32.
struct BatchNormDesc {
  int64_t outer, channels, inner;
  double epsilon, momentum;
  int32_t fixed, dtype;
};

// Kernels for cases that libraries do not cover, of ops/nn/batch_norm.cu. `pass`: one element per channel, which is
// copied.
// "batch_norm/apply": y by the given statistics, or by none; stores the statistics used to `used` and `inverse`, and
// mean and variance to mean_out and variance_out.
// "batch_norm/move": mean_out and variance_out from the moving statistics and those of the batch in `used` and
// `unbiased` (over the number of elements of a channel minus one).
// Only for "batch_norm_last_add_relu": z, which is added to y before relu.
struct BatchNormArgs {
  DeviceIn x, scale, bias, mean, variance, unbiased, z;
  DeviceOut y, mean_out, variance_out, used, inverse;
  int64_t outer, channels, inner;
  double epsilon, momentum;
  int32_t pass, reserved;
};

// "batch_norm/grad": the gradients that are not missing. Statistics: `mean`, else `used`; `variance`, else `inverse`.
// Only for "batch_norm_last_relu_grad": bias, or y if it is missing. For "batch_norm_last_add_relu_grad": y; dz, the
// gradient of the added operand, which may alias dy; more, which may be missing, is added to dy.
struct BatchNormGradArgs {
  DeviceIn x, scale, dy, used, inverse, mean, variance, bias, y, more;
  DeviceOut dx, dscale, dbias, dz;
  int64_t outer, channels, inner;
  double epsilon;
  int32_t fixed, pass;
};

static_assert(is_plain_args<ConvDesc> && is_plain_args<PoolArgs> && is_plain_args<BatchNormDesc>);
static_assert(is_plain_args<BatchNormArgs> && is_plain_args<BatchNormGradArgs>);

}  // namespace anabranch::device
