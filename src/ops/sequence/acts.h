// The activations of recurrent layers, by the names in their attributes, and those of gated recurrent units.
#pragma once
#include <cstdint>

namespace anabranch::sequence {

enum class Act : int32_t { kIdentity = 0, kSigmoid = 1, kTanh = 2, kRelu = 3 };

struct GruOptions {
  Act gate, candidate;
  bool origin;  // the update gate weights the old state instead of the candidate
};

}  // namespace anabranch::sequence
