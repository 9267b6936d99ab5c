// Pieces of declarations that many ops share: attributes that every file of Fluid carries and that have no meaning
// here, and reasons why an op has no gradient.
#pragma once
#include <initializer_list>
#include <string>

#include "opdef/op_def.h"
#include "ops/kernels/checks.h"

namespace anabranch {

inline constexpr const char* kNoSecondOrder = "gradients of second order are not offered";
inline constexpr const char* kNotDifferentiable = "piecewise constant or not differentiable";

// Boolean attributes that choose a library in the original.
inline OpDef& ignored_flags(OpDef& op, std::initializer_list<const char*> names) {
  for (const char* name : names) op.attr<bool>(name, false, "accepted, without effect");
  return op;
}

// A rank-1 tensor of one element, Fluid's scalar.
inline Shape scalar_shape() { return Shape{1}; }

}  // namespace anabranch
