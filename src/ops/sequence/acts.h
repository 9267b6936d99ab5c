// The activations of recurrent layers, by which their attributes name them.
#pragma once
#include <cstdint>

namespace anabranch::sequence {

enum class Act : int32_t { kIdentity = 0, kSigmoid = 1, kTanh = 2, kRelu = 3 };

}  // namespace anabranch::sequence
