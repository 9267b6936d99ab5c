// How ops declare divisions of integers, beside launch.h: their kernels report a divisor of 0.
#pragma once
#include <string>

#include "opdef/device_words.h"
#include "ops/device/args_math.h"
#include "ops/device/launch.h"

namespace anabranch::device {

inline auto divided_by_zero() { return device_fault(1, "an integer is divided by zero, at element {} (<Y>)"); }

// Out = f(X, Y), broadcast, by "integer_division/<function>".
inline auto integer_division(const char* function) {
  return [=](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    return [kernel = kernel_of<T>(std::string("integer_division/") + function), x = op.in("X"), y = op.in("Y"),
            out = op.out("Out"), axis = op.attr<int32_t>("axis")](KernelContext& c) {
      const DeviceContext& queued = DeviceContext::of(c);
      const auto axes = axes_of(broadcast_loop(c[out].shape(), c[x].shape(), c[y].shape(), axis));
      queued.launch(kernel,
                    CheckedBinaryArgs{{operand(c[x]), operand(c[y]), operand(c[out]), axes, {}}, fault_of(queued)});
    };
  };
}

// X@GRAD and Y@GRAD of the quotient, by "integer_division_grad/div".
inline auto integer_division_grad() {
  return [](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    return [kernel = kernel_of<T>("integer_division_grad/div"), x = op.in("X"), y = op.in("Y"), out = op.in("Out"),
            dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dy = op.out("Y@GRAD"),
            axis = op.attr<int32_t>("axis")](KernelContext& c) {
      const DeviceContext& queued = DeviceContext::of(c);
      const auto wanted = [&c](Out o) { return c.wants(o) ? operand(c[o]) : DeviceOut{}; };
      const auto axes = axes_of(broadcast_loop(c[dout].shape(), c[x].shape(), c[y].shape(), axis));
      const BinaryGradArgs a{
          operand(c[x]), operand(c[y]), operand(c[out]), operand(c[dout]), wanted(dx), wanted(dy), axes, {}};
      queued.launch(kernel, CheckedBinaryGradArgs{a, fault_of(queued)});
    };
  };
}

}  // namespace anabranch::device
