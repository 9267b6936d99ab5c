// Pieces of declarations that many ops share: attributes that every file of Fluid carries and that have no meaning
// here, shape rules of gradient ops, checks of agreeing shapes.
#pragma once
#include <initializer_list>
#include <string>

#include "opdef/op_def.h"

namespace anabranch {

inline constexpr const char* kNoSecondOrder = "gradients of second order are not offered";
inline constexpr const char* kNotDifferentiable = "piecewise constant or not differentiable";

// Boolean attributes that choose a library in the original.
inline OpDef& ignored_flags(OpDef& op, std::initializer_list<const char*> names) {
  for (const char* name : names) op.attr<bool>(name, false, "accepted, without effect");
  return op;
}

inline void check_same_shape(InferContext& c, const char* a, const char* b) {
  const Shape &x = c.in(a).shape, &y = c.in(b).shape;
  AB_CHECK(compatible(x, y), ShapeMismatch, "{}: {} is {}, {} is {}: they must be equal", c.op().type, a, x.str(), b,
           y.str());
}

// A rank-1 tensor of one element, Fluid's scalar.
inline Shape scalar_shape() { return Shape{1}; }

}  // namespace anabranch
