// Runs a TileProgram on a device in one launch. Owned by one kernel.
#pragma once
#include <vector>

#include "opdef/device_context.h"
#include "opdef/made_kernel.h"
#include "ops/device/args_steps.h"
#include "ops/device/upload.h"
#include "ops/math/input_forms.h"

namespace anabranch::math {

class ElementSteps {
 public:
  // `dtype`: of all tensors. Unsupported for a step that devices do not have, for more than kMaxOutsOnDevices results,
  // and for more than kMaxKept live results.
  ElementSteps(const TileProgram& program, DType dtype);

  // Returns false and does nothing if a tensor is broadcast in a way that the kernel does not support.
  bool run(const DeviceContext& c);

 private:
  int inputs_;
  size_t outs_;
  InputForms forms_;
  MadeKernel kernel_;
  std::vector<device::ElementStep> steps_;
  device::Upload table_;
};

}  // namespace anabranch::math
