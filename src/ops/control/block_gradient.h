// Shared by the gradient ops of all ops with a block: their slots, and a kernel that runs the gradient block once per
// iteration of the forward block, last iteration first.
#pragma once
#include "opdef/op_def.h"

namespace anabranch::control {

// Slots of a gradient op: `in` lists the variables that the forward block reads, `out` those that it writes.
struct GradientSlots {
  const char *in, *out;
  bool repeats = false;  // the block may run many times in a step
};
// Declares in, out, out@GRAD, in@GRAD, Before@GRAD, the attribute sub_block, the shape function and the kernel.
void declare_block_gradient(OpDef& def, const GradientSlots& slots);
// The gradients of those slots, for the gradient function of the forward op.
void fill_block_gradient(GradContext& g, GradOp op, const GradientSlots& slots);

}  // namespace anabranch::control
