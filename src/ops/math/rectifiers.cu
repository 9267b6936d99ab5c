// Functions that cut, bend or gate, on devices: "map/<op>" and "map_grad/<op>", attributes in the op's order.
#include "ops/math/gelu_functions.h"
#include "ops/math/map_kernel.h"
#include "ops/math/rectifier_functions.h"

namespace anabranch::math {

AB_MAP("relu", Relu);
AB_MAP("relu6", Relu6);
AB_MAP("brelu", Brelu);
AB_MAP("leaky_relu", LeakyRelu);
AB_MAP("elu", Elu);
AB_MAP("selu", Selu);
AB_MAP("thresholded_relu", ThresholdedRelu);
AB_MAP("hard_shrink", HardShrink);
AB_MAP("softshrink", SoftShrink);
AB_MAP("softsign", Softsign);
AB_MAP("swish", Swish);
AB_MAP("hard_sigmoid", HardSigmoid);
AB_MAP("hard_swish", HardSwish);
AB_MAP("soft_relu", SoftRelu);
AB_MAP("gelu", Gelu);
AB_MAP("gelu_tanh", GeluTanh);
// With FLAGS_exact_fluid.
AB_KERNEL("map_grad/hard_swish_as_fluid", device::MapGrad<HardSwishAsFluid>, float, double, device::half,
          device::bfloat16);

}  // namespace anabranch::math
