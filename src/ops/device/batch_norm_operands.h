// The operands of the library calls "batch_norm" and "batch_norm_grad" (args_library.h) as arguments of kernels.
#pragma once
#include "device/plugin_api.h"
#include "ops/device/args_library.h"

namespace anabranch::device {

inline DeviceIn read(const ab_operand& o) { return {o.address, o.bytes}; }
inline DeviceOut write(const ab_operand& o) { return {o.address, o.bytes}; }

inline void take(BatchNormArgs& a, const ab_operand* o) {
  a.x = read(o[0]);
  a.scale = read(o[1]);
  a.bias = read(o[2]);
  a.mean = read(o[3]);
  a.variance = read(o[4]);
  a.y = write(o[5]);
  a.mean_out = write(o[6]);
  a.variance_out = write(o[7]);
  a.used = write(o[8]);
  a.inverse = write(o[9]);
}

// Without mean and variance, which are used only with fixed statistics.
inline void take(BatchNormGradArgs& a, const ab_operand* o) {
  a.x = read(o[0]);
  a.scale = read(o[1]);
  a.dy = read(o[2]);
  a.used = read(o[3]);
  a.inverse = read(o[4]);
  a.dx = write(o[7]);
  a.dscale = write(o[8]);
  a.dbias = write(o[9]);
}

}  // namespace anabranch::device
