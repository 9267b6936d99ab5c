// An attribute that autodiff gives to ops with gradient blocks: the outer arrays of tensors of which each iteration
// computes a whole gradient. For other arrays an iteration adds to the elements of the previous iteration's gradient.
#pragma once

namespace anabranch {

inline constexpr const char* kWholeArrays = "op_whole_arrays";  // STRINGS

}  // namespace anabranch
