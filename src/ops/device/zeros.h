// Outputs of devices that may be unwanted, as gradients are, and zeros in them.
#pragma once
#include "ops/device/launch.h"

namespace anabranch::device {

inline void fill_zero(const DeviceContext& c, Tensor& t) {
  if (t.bytes() == 0) return;
  c.devices().check(c.devices().api().fill(c.queue(), t.mutable_raw(), 0, t.bytes()), "filling with zeros");
}

inline void fill_zero_if_wanted(const DeviceContext& c, Out out) {
  if (c.wants(out)) fill_zero(c, c[out]);
}

// The operand of an output, missing where it is not wanted.
inline DeviceOut wanted_operand(const KernelContext& c, Out out) {
  return c.wants(out) ? operand(c[out]) : DeviceOut{};
}
inline DeviceIn given_operand(const KernelContext& c, In in) { return in ? operand(c[in]) : DeviceIn{}; }

}  // namespace anabranch::device
