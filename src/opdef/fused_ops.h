// What passes write into the attributes of fused ops, and their kernels read.
#pragma once
#include <cstdint>
#include <string_view>

namespace anabranch::fused {

// ---- fused_elementwise: what one op takes
inline constexpr int kMaxSteps = 24, kMaxInputs = 24;
inline constexpr int kMaxArgs = 8;  // of one step
// On devices, where results that later steps read are kept for one element at a time.
inline constexpr int kMaxStepsOnDevices = 512, kMaxOutsOnDevices = 128, kMaxKept = 16;

// ---- fused_embedding_concat, _grad and _update: how the rows of a sequence become one
enum class Pool : int32_t { kNone = 0, kSum = 1, kAverage = 2, kSqrt = 3 };

// kNone for the other kinds of sequence_pool, which the fused ops do not know.
constexpr Pool pool_of(std::string_view pooltype) {
  return pooltype == "SUM"       ? Pool::kSum
         : pooltype == "AVERAGE" ? Pool::kAverage
         : pooltype == "SQRT"    ? Pool::kSqrt
                                 : Pool::kNone;
}

// ---- images in the layout of the kernel library: channels in blocks
inline constexpr int64_t kMostInBlock = 16;  // channels; the block of each machine divides it

}  // namespace anabranch::fused
