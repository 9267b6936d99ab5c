// An attribute that autodiff gives to ops with gradient blocks: the arrays of tensors outside of the block of which
// each turn makes a whole gradient. Of other arrays a turn adds to the elements of the gradient that the turn before
// has left.
#pragma once

namespace anabranch {

inline constexpr const char* kWholeArrays = "op_whole_arrays";  // STRINGS

}  // namespace anabranch
