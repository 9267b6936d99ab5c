#include "ops/device/launch_math.h"

namespace anabranch::device {

DTypeFactory pairs(std::string stem) {
  return [=](DType dtype, const KernelArgs& op) -> Kernel {
    return [kernel = kernel_of(stem, dtype), x = op.in("X"), y = op.in("Y"),
            out = op.out("Out")](const DeviceContext& c) { launch_pairs(c, kernel, c[x], c[y], c[out]); };
  };
}

DTypeFactory question(const char* question, bool none) {
  return [=](DType dtype, const KernelArgs& op) -> Kernel {
    return [kernel = kernel_of(std::string("question/") + question, dtype), x = op.in("X"), out = op.out("Out"),
            none](const DeviceContext& c) {
      c.launch(kernel, MapArgs{operand(c[x]), operand(c[out]), c[x].numel(), {none ? 1.0 : 0.0}});
    };
  };
}

}  // namespace anabranch::device
