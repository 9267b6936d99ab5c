// Runs a TileProgram on a device, as one launch. Belongs to one kernel.
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
  // and where more than kMaxKept results wait for their readers.
  ElementSteps(const TileProgram& program, DType dtype);

  // False, with nothing done, when a tensor is laid on another one in a way that the kernel does not know.
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
