// Runs the steps of a TileProgram one after another on whole tensors, each by the kernel of its op: for shapes and
// lengths that fit neither tiles nor device kernels.
#pragma once
#include <vector>

#include "opdef/device_context.h"
#include "opdef/runtime.h"
#include "ops/math/tile_program.h"

namespace anabranch::math {

class StepByStep {
 public:
  // `dtype`: of all tensors; `place`: their device, where the steps run.
  StepByStep(const TileProgram& program, DType dtype, Place place);
  void run(const KernelContext& outer);

 private:
  struct Step {
    RuntimeShapes shapes;
    Kernel kernel;
    std::vector<int> args;
  };
  // `c`: like outer, with separate arguments.
  void run_steps(const KernelContext& outer, KernelContext& c);

  int inputs_;
  std::vector<int32_t> outs_;
  std::vector<Value> results_;
  std::vector<Step> steps_;
};

}  // namespace anabranch::math
