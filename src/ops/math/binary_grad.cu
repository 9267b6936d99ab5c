// Gradients of binary arithmetic on devices: "binary_grad/<op>".
#include "ops/math/binary_grad.h"

namespace anabranch::math {

using device::bfloat16;
using device::BinaryGrad;
using device::half;

AB_KERNEL("binary_grad/add", BinaryGrad<Add>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("binary_grad/sub", BinaryGrad<Sub>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("binary_grad/mul", BinaryGrad<Mul>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("binary_grad/div", BinaryGrad<Div>, float, double, half, bfloat16);
AB_KERNEL("binary_grad/pow", BinaryGrad<Pow>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("binary_grad/max", BinaryGrad<Max>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("binary_grad/min", BinaryGrad<Min>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("integer_division_grad/div", device::IntegerDivisionGrad<Div>, int32_t, int64_t);

}  // namespace anabranch::math
