// Exponentials, powers, trigonometric and step functions on devices: "map/<op>" and "map_grad/<op>", attributes in the
// op's order.
#include "ops/math/activation_functions.h"
#include "ops/math/map_kernel.h"
#include "ops/math/step_functions.h"

namespace anabranch::math {

#define AB_KERNELS(name, F) AB_MAP(name, F);
AB_WAVES(AB_KERNELS)

}  // namespace anabranch::math
