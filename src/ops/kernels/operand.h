// The precision in which a product or a convolution reads its operands. Thread-safe.
#pragma once
#include "base/cpu.h"
#include "ir/op.h"

namespace anabranch {

enum class Operand { kFull, kBfloat16 };  // kBfloat16: float32 operands are rounded to it; sums stay float32

// The pass bfloat16_products and mixed-precision optimizers set this attribute; Fluid ignores it.
inline Operand operand_of(const ir::Op& op) {
  const bool lower = op.has_attr("bfloat16") && op.attr<bool>("bfloat16") && cpu_has_bfloat16();
  return lower ? Operand::kBfloat16 : Operand::kFull;
}

}  // namespace anabranch
