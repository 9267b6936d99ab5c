// Gradients of sums and products on devices: "binary_grad/<op>".
#include "ops/math/binary_grad.h"

namespace anabranch::math {

using device::bfloat16;
using device::BinaryGrad;
using device::half;

AB_KERNEL("binary_grad/add", BinaryGrad<Add>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("binary_grad/sub", BinaryGrad<Sub>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("binary_grad/mul", BinaryGrad<Mul>, float, double, half, bfloat16, int32_t, int64_t);

}  // namespace anabranch::math
