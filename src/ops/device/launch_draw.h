// How ops that draw random numbers declare their kernels for devices. The step lies in the arguments: a launch that was
// recorded would draw the same numbers again.
#pragma once
#include <array>
#include <string>

#include "ops/device/launch.h"
#include "ops/kernels/philox.h"

namespace anabranch::device {

// key: of this run.
inline DrawArgs draw_args(const RandomKey& key, Tensor& y) {
  DrawArgs a{};
  a.y = operand(y);
  a.n = y.numel();
  a.seed = key.seed, a.stream = key.stream, a.turns = key.turns;
  a.fixed_step = key.step;
  a.replica = key.replica;
  return a;
}

// Out = numbers by the kernel "draw/<distribution>", which takes two more.
template <class T> Kernel draw(const KernelArgs& op, const std::string& distribution, std::array<double, 2> p) {
  return [p, kernel = kernel_of<T>("draw/" + distribution), key = op.random(), out = op.out("Out")](KernelContext& c) {
    DrawArgs a = draw_args(with_step(key, c), c[out]);
    std::copy(p.begin(), p.end(), a.p);
    DeviceContext::of(c).launch(kernel, a);
  };
}

}  // namespace anabranch::device
