// Steps of fused_elementwise on devices: ops whose float32 device kernels apply one function to each element.
// device_step() declares the function, its inputs and its numbers; ops without it cannot be part of such a node.
#pragma once
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "opdef/kernel_context.h"

namespace anabranch {

class OpDef;

struct DeviceStep {
  std::string function;       // of ops/math/step_functions.h
  std::vector<int> operands;  // of the op's flattened inputs, in the function's order
  std::array<float, 4> numbers{};
};

// Of an op with several outputs, `result` names the slot that the step computes.
using DeviceStepOf = std::function<DeviceStep(const KernelArgs& op, const std::string& result)>;

void add_device_step(OpDef& def, DeviceStepOf make);
inline auto device_step(DeviceStepOf make) {  // .with(device_step(...))
  return [make = std::move(make)](OpDef& def) { add_device_step(def, make); };
}

const DeviceStepOf* device_step_of(const std::string& type);  // null: it is not a step

}  // namespace anabranch
