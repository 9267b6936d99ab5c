// How many lanes a launch over elements has on a GPU: of kernels that nvcc compiles, of those that the driver does, and
// of the host's order of elements.
#pragma once
#include <algorithm>
#include <cstdint>

namespace anabranch::device {

inline constexpr int kBlock = 256;
inline constexpr int64_t kMostBlocks = 132 * 32;  // as many as an H100 has at work at once; their lanes go on

// Fewer are not too many for a lane each: it takes one, not 16 bytes of them.
inline constexpr int64_t kManyElements = 1 << 18;

inline unsigned blocks_for(int64_t pieces) { return static_cast<unsigned>(std::min(pieces, kMostBlocks)); }
inline unsigned blocks_of(int64_t lanes) { return blocks_for((lanes + kBlock - 1) / kBlock); }

}  // namespace anabranch::device
