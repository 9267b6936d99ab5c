// Shared by the ops that 1.8.5 makes from parts of models when it saves them for inference.
#pragma once
#include "ops/sequence/steps.h"

namespace anabranch::sequence {

inline constexpr const char* kForInference = "it is for inference; the ops that it replaces have gradients";

// Outputs that such an op names in a program and that 1.8.5 uses as scratch memory.
inline void names_only(OpDef& def, std::initializer_list<const char*> slots) {
  for (const char* slot : slots) def.out_named_only(slot, "unused");
}

// The inputs of a product: [.., k] and [k, n]; returns n.
inline int64_t check_product(const InferContext& c, const char* x, const char* w) {
  for (const char* slot : {x, w}) check_rank(c, slot, 2, 2);
  check_same_dtype(c, w, x);
  check_shape(c, w, Shape{c.in(x).shape[1], kUnknown});
  return c.in(w).shape[1];
}

}  // namespace anabranch::sequence
