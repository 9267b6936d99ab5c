// The number of lanes of a launch over elements on a GPU: for kernels compiled by nvcc or by the driver, and for the
// host's order of elements.
#pragma once
#include <algorithm>
#include <cstdint>

namespace anabranch::device {

inline constexpr int kBlock = 256;
inline constexpr int64_t kMostBlocks = 132 * 32;  // the blocks that an H100 runs at once; their lanes loop

// Below this, each lane takes one element instead of 16 bytes of them.
inline constexpr int64_t kManyElements = 1 << 18;

inline unsigned blocks_for(int64_t chunks) { return static_cast<unsigned>(std::min(chunks, kMostBlocks)); }
inline unsigned blocks_of(int64_t lanes) { return blocks_for((lanes + kBlock - 1) / kBlock); }

}  // namespace anabranch::device
