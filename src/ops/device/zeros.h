// Optional outputs of devices, such as gradients, and filling them with zeros.
#pragma once
#include "ops/device/launch.h"

namespace anabranch::device {

inline void fill_zero(const DeviceContext& c, Tensor& t) {
  if (t.bytes() == 0) return;
  c.devices().check(c.devices().api().fill(c.queue(), t.mutable_raw(), 0, t.bytes()), "filling with zeros");
}

inline void fill_zero_if_needed(const DeviceContext& c, Out out) {
  if (c.needs(out)) fill_zero(c, c[out]);
}

// The operand of an output, missing if it is not requested.
inline DeviceOut needed_operand(const KernelContext& c, Out out) {
  return c.needs(out) ? operand(c[out]) : DeviceOut{};
}
inline DeviceIn given_operand(const KernelContext& c, In in) { return in ? operand(c[in]) : DeviceIn{}; }

}  // namespace anabranch::device
