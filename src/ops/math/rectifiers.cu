// Functions that clip, bend or gate, on devices: "map/<op>" and "map_grad/<op>", attributes in the op's order.
#include "ops/math/gelu_functions.h"
#include "ops/math/map_kernel.h"
#include "ops/math/rectifier_functions.h"
#include "ops/math/step_functions.h"

namespace anabranch::math {

#define AB_KERNELS(name, F) AB_MAP(name, F);
AB_GATES(AB_KERNELS)

// With FLAGS_exact_fluid.
AB_KERNEL("map_grad/hard_swish_as_fluid", device::MapGrad<HardSwishAsFluid>, float, double, device::half,
          device::bfloat16);

}  // namespace anabranch::math
