// Attributes of fused ops, written by passes and read by kernels.
#pragma once
#include <cstdint>
#include <string_view>

namespace anabranch::fused {

// ---- fused_elementwise: limits of one op
inline constexpr int kMaxSteps = 24, kMaxInputs = 24;
inline constexpr int kMaxArgs = 8;  // of one step
// On devices, where results that later steps read are kept per element.
inline constexpr int kMaxStepsOnDevices = 512, kMaxOutsOnDevices = 128, kMaxKept = 16;

// ---- fused_embedding_concat, _grad and _update: how the rows of a sequence are pooled
enum class Pool : int32_t { kNone = 0, kSum = 1, kAverage = 2, kSqrt = 3 };

// kNone for the other kinds of sequence_pool, which the fused ops do not support.
constexpr Pool pool_of(std::string_view pooltype) {
  return pooltype == "SUM"       ? Pool::kSum
         : pooltype == "AVERAGE" ? Pool::kAverage
         : pooltype == "SQRT"    ? Pool::kSqrt
                                 : Pool::kNone;
}

// ---- fused_embedding_dot and _combine: elements of the rows that are multiplied with one row
inline constexpr int64_t kMostInRowProduct = 4096;  // more of them are multiplied by a library, in another order

// ---- images in the layout of oneDNN: channels in blocks
inline constexpr int64_t kMostInBlock = 16;  // channels; the block of each machine divides it

}  // namespace anabranch::fused
