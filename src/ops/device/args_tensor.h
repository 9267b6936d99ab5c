// Arguments of kernels of ops/tensor; see also args.h.
#pragma once
#include "ops/device/args.h"

namespace anabranch::device {

// "fill/...": sets every y to the number given by its bits or, if `number` is given, by its element.
struct FillArgs {
  DeviceIn number;
  DeviceOut y;
  int64_t n;
  uint64_t bits;  // in the lowest bytes
};

// "triangle/...", "eye/...": matrices [count, rows, cols]. triangle keeps the elements on and below the diagonal (flags
// 1) or on and above it; diagonals above the main one are positive.
struct MatrixArgs {
  DeviceIn x;
  DeviceOut y;
  int64_t count, rows, cols, diagonal;
  int32_t flags, reserved;
};

// "range/...": y[i] = start + i step. "linspace/...": n numbers from start to step, both included. Both numbers are in
// device memory.
struct SequenceArgs {
  DeviceIn start, step;
  DeviceOut y;
  int64_t n;
};

// "one_hot/<id>/<to>": y [n, depth]. flags 1: an id out of range gives zeros instead of a fault (code 1, detail:
// position).
struct OneHotArgs {
  DeviceIn ids;
  DeviceOut y;
  FaultSink fault;
  int64_t n, depth;
  int32_t flags, reserved;
};

// "pad2d/...", "pad2d_grad/...": x [images, rows, cols, channels]; if the channels come first, channels is 1 and images
// counts them. mode: 0 constant, 1 reflect, 2 edge. For the gradient x is the gradient of the padded image.
struct Pad2dArgs {
  DeviceIn x;
  DeviceOut y;
  int64_t images, rows, cols, channels;  // of the image without its border
  int64_t top, bottom, left, right;
  double value;
  int32_t mode, reserved;
};

// "running_sum/...": x and y [outer, width, inner], sums along width. flags 1: exclusive, 2: from the last element.
struct RunningSumArgs {
  DeviceIn x;
  DeviceOut y;
  int64_t outer, width, inner;
  int32_t flags, reserved;
};

// "where/<integer>": y[i] = x[i] if the bool condition is true, else other[i]. Missing operands are zeros.
struct WhereArgs {
  DeviceIn condition, x, other;
  DeviceOut y;
  int64_t n;
  int64_t step;  // from one condition to the next; 0: one for all
};

static_assert(is_plain_args<FillArgs> && is_plain_args<MatrixArgs> && is_plain_args<SequenceArgs> &&
              is_plain_args<OneHotArgs> && is_plain_args<Pad2dArgs> && is_plain_args<RunningSumArgs> &&
              is_plain_args<WhereArgs>);

}  // namespace anabranch::device
