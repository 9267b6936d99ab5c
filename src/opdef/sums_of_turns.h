// Attributes that autodiff gives to ops with gradient blocks, so that gradients are added up in the order in which
// those of the program written out are: one after another, whichever turn of whichever block they come from.
#pragma once

namespace anabranch {

// The slot of gradients that exist before the op, and to which its turns add; what they are of.
inline constexpr const char* kSumSlot = "Sum@GRAD";
inline constexpr const char* kSumsOf = "op_sums_of";  // STRINGS, as many as arguments of the slot
// Variables of which the ops of the block add to the sum themselves, because a turn has several parts of it: in the
// block x@GRAD is that sum. Of others a turn makes one part.
inline constexpr const char* kSumsInside = "op_sums_inside";  // STRINGS

}  // namespace anabranch
