// Arithmetic and memory traffic of an op's mathematics, from the shapes of its arguments, for comparison with measured
// times. Multiplications and additions are counted for products and convolutions, the only ops that can be bound by
// arithmetic; bytes are each argument once, sparse ones by their rows.
#pragma once
#include <span>

#include "core/value.h"
#include "ir/op.h"

namespace anabranch {

struct OpWork {
  double flops = 0, bytes = 0;
};

// ins and outs: in the order of the op's arguments; null for "none".
OpWork work_of(const ir::Op& op, std::span<Value* const> ins, std::span<Value* const> outs);

}  // namespace anabranch
