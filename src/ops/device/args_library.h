// What library calls are planned with, beside GemmDesc of args.h. Images and volumes are [batch, channels, depth,
// height, width] as stored, or with the channels last; an image is a volume of depth 1.
#pragma once
#include "ops/device/args.h"

namespace anabranch::device {

// A window that goes over the last three axes. before, after: elements of padding in front of `in` and behind it.
struct WindowDesc {
  int64_t in[3], out[3], kernel[3], stride[3], dilation[3], before[3], after[3];
  int32_t axes, channels_last;  // axes: 2 of images, 3 of volumes
};

enum ConvPassKind : int32_t { kConvForward, kConvBackwardData, kConvBackwardFilter };

// "conv": a convolution (a cross-correlation), or one of its gradients. Filters are [out_channels, in_channels /
// groups, depth, height, width] in both layouts. Operands, the third the result:
//   forward: images, filter, output      data: gradient of the output, filter, that of the images
//   filter: images, gradient of the output, that of the filter
struct ConvDesc {
  WindowDesc window;
  int64_t batch, in_channels, out_channels, groups;
  int32_t pass, rounded;  // rounded: operands may be rounded to bfloat16
  int32_t dtype, reserved;
};

// "pool/max", "pool/avg": result = out. "pool_grad/max", "pool_grad/avg": result = the gradient of x. The kernels of
// ops/nn/pool.cu: libraries know no windows that share an image out, and no first among equals. A largest element that
// stands in several places counts as that of the first; averages divide by the elements inside the image, unless
// count_padding.
struct PoolArgs {
  DeviceIn x, out, dout;  // what is not read is missing
  DeviceOut result;
  WindowDesc window;  // adaptive: windows share `in` out evenly, and kernel and stride do not count
  int64_t batch, channels;
  int32_t adaptive, count_padding;
};

// "batch_norm": tensors [outer, channels, inner]. Operands: x, scale, bias, mean, variance, y, mean_out, variance_out
// (either may be missing), mean used, inverse deviation used. fixed: mean and variance are used, not those of the
// batch, and do not move. "batch_norm_grad": x, scale, gradient of y, saved mean, saved inverse deviation, mean,
// variance (either may be missing, they count where fixed), gradients of x, scale, bias (each may be missing). Where
// dtype is of 16 bits, x, y and their gradients are; all of the channels are float32.
struct BatchNormDesc {
  int64_t outer, channels, inner;
  double epsilon, momentum;
  int32_t fixed, dtype;
};

// Kernels for what a library leaves out of it, of ops/nn/batch_norm.cu. `pass`: one element a channel, which passes.
// "batch_norm/apply": y by the given statistics, or by none; what was used goes to `used` and `inverse`, and mean_out
// and variance_out are mean and variance.
// "batch_norm/move": mean_out and variance_out of the moving statistics, of those of the batch in `used` and `unbiased`
// (by the elements of a channel less one).
// Of "batch_norm_last_add_relu" alone: z, which is added to y before relu.
struct BatchNormArgs {
  DeviceIn x, scale, bias, mean, variance, unbiased, z;
  DeviceOut y, mean_out, variance_out, used, inverse;
  int64_t outer, channels, inner;
  double epsilon, momentum;
  int32_t pass, reserved;
};

// "batch_norm/grad": the gradients that are not missing. Statistics: `mean`, else `used`; `variance`, else `inverse`.
// Of "batch_norm_last_relu_grad" alone: bias, or where that is missing y. Of "batch_norm_last_add_relu_grad": y; dz,
// the gradient of what was added, which may lie in the memory of dy; more, which may be missing, is added to dy.
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
