#include "ops/device/launch_division.h"

#include "opdef/device_status.h"
#include "ops/device/args_math.h"

namespace anabranch::device {

void divided_by_zero(OpDef& def) { def.with(device_fault(1, "integer division by zero at element {} (<Y>)")); }

DTypeFactory integer_division(const char* function) {
  return [=](DType dtype, const KernelArgs& op) -> Kernel {
    return [kernel = kernel_of(std::string("integer_division/") + function, dtype), x = op.in("X"), y = op.in("Y"),
            out = op.out("Out"), axis = op.attr<int32_t>("axis")](const DeviceContext& c) {
      const auto axes = axes_of(broadcast_loop(c[out].shape(), c[x].shape(), c[y].shape(), axis));
      c.launch(kernel, CheckedBinaryArgs{{operand(c[x]), operand(c[y]), operand(c[out]), axes, {}}, fault_of(c)});
    };
  };
}

DTypeFactory integer_division_grad() {
  return [](DType dtype, const KernelArgs& op) -> Kernel {
    return [kernel = kernel_of("integer_division_grad/div", dtype), x = op.in("X"), y = op.in("Y"), out = op.in("Out"),
            dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dy = op.out("Y@GRAD"),
            axis = op.attr<int32_t>("axis")](const DeviceContext& c) {
      const auto needed = [&c](Out o) { return c.needs(o) ? operand(c[o]) : DeviceOut{}; };
      const auto axes = axes_of(broadcast_loop(c[dout].shape(), c[x].shape(), c[y].shape(), axis));
      const BinaryGradArgs a{
          operand(c[x]), operand(c[y]), operand(c[out]), operand(c[dout]), needed(dx), needed(dy), axes, {}};
      c.launch(kernel, CheckedBinaryGradArgs{a, fault_of(c)});
    };
  };
}

}  // namespace anabranch::device
