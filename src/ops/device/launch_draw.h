// How random ops declare their device kernels. The step number is read on the device, so a captured launch draws new
// numbers in every run.
#pragma once
#include <array>
#include <string>

#include "ops/device/launch.h"
#include "ops/kernels/philox.h"

namespace anabranch::device {

inline DrawArgs draw_args(const RandomKey& op, const DeviceContext& c, Tensor& y) {
  const RandomKey key = with_step(op, c);
  DrawArgs a{};
  if (!key.repeats) a.step = step_of(c);
  a.y = operand(y);
  a.n = y.numel();
  a.seed = key.seed, a.stream = key.stream, a.iterations = key.iterations;
  a.fixed_step = key.repeats ? key.step : 0;
  a.replica = key.replica;
  return a;
}

// Out = random numbers by the kernel "draw/<distribution>", which takes two parameters.
template <class T> Kernel draw(const KernelArgs& op, const std::string& distribution, std::array<double, 2> p) {
  return [p, kernel = kernel_of<T>("draw/" + distribution), key = op.random(),
          out = op.out("Out")](const DeviceContext& c) {
    DrawArgs a = draw_args(key, c, c[out]);
    std::copy(p.begin(), p.end(), a.p);
    c.launch(kernel, a);
  };
}

}  // namespace anabranch::device
