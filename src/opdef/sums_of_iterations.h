// Attributes that autodiff gives to ops with gradient blocks, so that gradients are summed in the order of the unrolled
// program: one after another, whichever iteration of whichever block they come from.
#pragma once

namespace anabranch {

// The slot of gradients that exist before the op, and to which its iterations add; their variables.
inline constexpr const char* kSumSlot = "Sum@GRAD";
inline constexpr const char* kSumsOf = "op_sums_of";  // STRINGS, one per argument of the slot
// Variables for which the ops of the block add to the sum themselves, because an iteration has several terms: in the
// block x@GRAD is that sum. For others an iteration has one term.
inline constexpr const char* kSumsInside = "op_sums_inside";  // STRINGS

}  // namespace anabranch
