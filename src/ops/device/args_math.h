// Arguments of kernels of ops/math; see also args.h.
#pragma once
#include "ops/device/args.h"

namespace anabranch::device {

// "integer_division/...": like "binary/...". A divisor of 0 is reported with code 1 and the index of the element.
struct CheckedBinaryArgs {
  BinaryArgs binary;
  FaultSink fault;
};

// "integer_division_grad/div": like "binary_grad/...".
struct CheckedBinaryGradArgs {
  BinaryGradArgs binary;
  FaultSink fault;
};

// "scalar/...": y[i] = f(x[i]) with numbers from the args or, if `number` is given, its single element instead of p[0].
// `bounds`: for "scalar/clip", instead of p[0] and p[1].
struct ScalarArgs {
  DeviceIn x, dy, number, bounds[2];
  DeviceOut y;
  int64_t n;
  double p[kMaxNumbers];
  int64_t whole[kMaxNumbers];  // the same numbers for integer types
  int32_t flags, reserved;
};

inline constexpr int kMostSummands = 32;

// "sum/...": y = x[0] + x[1] + ..., in that order; y may alias one of them.
struct SumArgs {
  DeviceIn x[kMostSummands];
  DeviceOut y;
  int64_t n;
  int32_t count, reserved;
};

static_assert(is_plain_args<CheckedBinaryArgs> && is_plain_args<CheckedBinaryGradArgs> && is_plain_args<ScalarArgs> &&
              is_plain_args<SumArgs>);

}  // namespace anabranch::device
