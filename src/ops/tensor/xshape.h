// The output XShape of reshape2, transpose2 and similar ops, [0, X's extents...]: it has no elements, and the gradient
// takes its shape from it, so that X can be freed.
#pragma once
#include "opdef/infer_context.h"

namespace anabranch::tensor {

inline void set_xshape(InferContext& c) {
  const Meta& x = c.in("X");
  Shape shape = {0};
  for (int64_t extent : x.shape) shape.push_back(extent);
  c.set_out("XShape", shape, x.dtype);
  c.share_lod("XShape", "X");
}

inline Shape shape_of_x(const InferContext& c) {
  const Shape& xshape = c.in("XShape").shape;
  AB_CHECK(xshape.rank() > 1, ShapeMismatch, "XShape must be [0, X's extents...], got {}", xshape.str());
  return xshape.slice(1, xshape.rank());
}

}  // namespace anabranch::tensor
