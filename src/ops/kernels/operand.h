// How exactly a product or a convolution takes its operands. Any thread.
#pragma once
#include "base/cpu.h"
#include "ir/op.h"

namespace anabranch {

enum class Operand { kFull, kBfloat16 };  // kBfloat16: float32 operands are rounded to it; sums stay float32

// The attribute, which Fluid passes over, is set by the pass bfloat16_products and by optimizers of mixed precision.
inline Operand operand_of(const ir::Op& op) {
  const bool lower = op.has_attr("bfloat16") && op.attr<bool>("bfloat16") && cpu_has_bfloat16();
  return lower ? Operand::kBfloat16 : Operand::kFull;
}

}  // namespace anabranch
