// Arguments of kernels over windows of images, and of resized images.
#pragma once
#include "ops/device/args.h"

namespace anabranch::device {

// "max_pool_index/...": x as planes of [in 0, in 1, in 2]; mask: int32, the index of each largest element in its plane,
// -1 for a window without one. "max_pool_index_grad/...": x is Out@GRAD, y X@GRAD. adaptive: windows divide a plane
// evenly; otherwise kernel, stride and before (the leading padding) define them.
struct PoolIndexArgs {
  DeviceIn x, mask_in;
  DeviceOut y, mask;
  int64_t planes;
  int64_t in[3], out[3], kernel[3], stride[3], before[3];
  int32_t adaptive, reserved;
};

// "unfold/...": x as planes of [in 0, in 1], y as planes of [kernel 0, kernel 1, out 0, out 1]; if `channels` is not 0,
// y as [samples, out 0, out 1, channels, kernel 0, kernel 1]. Zeros outside of a plane. "unfold_grad/...": x is Y@GRAD,
// y X@GRAD.
struct UnfoldArgs {
  DeviceIn x;
  DeviceOut y;
  int64_t planes;
  int64_t in[2], out[2], kernel[2], stride[2], dilation[2], before[2];
  int64_t channels;
};

inline constexpr int kMostTaps = 4;

// Interpolation along one axis: output k is the sum over t < taps of weight[k taps + t] times input from[k taps + t]
// (int32, double). Inverse: input i is used by the entries k taps + t listed in uses[starts[i]] to uses[starts[i + 1] -
// 1] (int32), ascending.
struct ResampleAxis {
  DeviceIn from, weight, starts, uses;
  int64_t in, out;
  int32_t taps, reserved;
};

// "resample/...", "resample_grad/...": x as [outer, in 0, in 1, in 2, inner]. The tables are computed when shapes are
// inferred.
struct ResampleArgs {
  DeviceIn x;
  DeviceOut y;
  ResampleAxis axes[3];
  int64_t outer, inner;
};

// "grid_sample/...": y[n, c, h, w] = x[n, c] at grid[n, h, w]; all have one extent. "grid_sample_grad/...": y is
// X@GRAD; it or dgrid may be missing.
struct GridArgs {
  DeviceIn x, grid, dout;
  DeviceOut y, dgrid;
  int64_t batch, channels, rows, columns;
};

// "affine_grid/...": x [batch, 2, 3], y [batch, rows, columns, 2]. "affine_grid_grad/...": x is Output@GRAD, y
// Theta@GRAD.
struct AffineGridArgs {
  DeviceIn x;
  DeviceOut y;
  int64_t batch, rows, columns;
};

// "shift_frames/<bytes>": segments of `count` frames [channels, plane]. Channels below `earlier` come from the previous
// frame, channels from there below `later` from the next one. direction -1: the reverse.
struct FramesArgs {
  DeviceIn x;
  DeviceOut y;
  int64_t count, frames, channels, plane, earlier, later, direction;
};

static_assert(is_plain_args<GridArgs> && is_plain_args<AffineGridArgs> && is_plain_args<FramesArgs>);
static_assert(is_plain_args<PoolIndexArgs> && is_plain_args<UnfoldArgs> && is_plain_args<ResampleArgs>);

}  // namespace anabranch::device
