// Broadcasting of two operands by Fluid's rule: the operand of lower rank is aligned with axis `axis` of the other one
// (-1: with its last axes); extents must be equal or one of them 1, which is repeated. Trailing ones of the lower
// operand that would exceed the other are dropped. If `axis` is given, an operand of equal rank that fits there without
// its trailing ones is treated alike.
#pragma once
#include "core/shape.h"
#include "ops/kernels/nd_loop.h"

namespace anabranch {

// The operands' extents on the axes of the result, 1 where they have none.
struct Laid {
  Shape x, y;
};
// InvalidArgument if `axis` is not one of the result, ShapeMismatch if an operand reaches beyond.
Laid laid(const Shape& x, const Shape& y, int axis);
// ShapeMismatch names both shapes. An unknown extent makes the result's unknown, unless the other operand determines
// it.
Shape broadcast_shape(const Shape& x, const Shape& y, int axis);

// Loop over the result: operand 0 is the result, 1 is x, 2 is y; broadcast axes have stride 0.
NdLoop<3> broadcast_loop(const Shape& out, const Shape& x, const Shape& y, int axis);

}  // namespace anabranch
