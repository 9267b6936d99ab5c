// Shapes of two operands that meet element by element. Fluid's rule: the operand of lower rank is laid at axis `axis`
// of the other one (-1: aligned at the right end); extents must agree or one of them be 1, which is repeated. Ones at
// the end of the lower operand that would reach beyond the other are dropped.
#pragma once
#include "core/shape.h"
#include "ops/kernels/nd_loop.h"

namespace anabranch {

// The operand's extents laid on the axes of the result, 1 where it has none. InvalidArgument when it does not fit.
Shape laid_at(const Shape& operand, int rank, int axis);
// Where the operand of lower rank begins; checks `axis`.
int broadcast_axis(const Shape& x, const Shape& y, int axis);
// ShapeMismatch names both shapes. Unknown extents give unknown ones, unless the other operand fixes them.
Shape broadcast_shape(const Shape& x, const Shape& y, int axis);

// Loop over the result: operand 0 is the result, 1 is x, 2 is y; repeated axes have stride 0.
NdLoop<3> broadcast_loop(const Shape& out, const Shape& x, const Shape& y, int axis);

}  // namespace anabranch
