// Elementwise float32 ops as loops over a tile of contiguous values: the building blocks of fused_elementwise. An op's
// kernel and its tile loop apply one function to each element, so they give the same bits.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "opdef/kernel_context.h"

namespace anabranch {

// Loops over n elements.
using UnaryLoop = void (*)(const float* x, float* out, int64_t n);
using BinaryLoop = void (*)(const float* a, const float* b, float* out, int64_t n);

// in: the op's flattened inputs. `out` may be the same array as an input, but must not overlap it otherwise.
using TileLoop = std::function<void(const float* const* in, float* out, int64_t n)>;

struct TileOp {
  // Of an op with several outputs, `result` names the slot that the loop computes.
  std::function<TileLoop(const KernelArgs& op, const std::string& result)> make;
  int64_t grain = 0;  // minimum number of elements for another worker
  // The loop itself if it depends on no attribute; null otherwise.
  UnaryLoop unary = nullptr;
  BinaryLoop binary = nullptr;
};

TileOp tile_of(std::string_view x, int64_t grain, UnaryLoop loop);
TileOp tile_of(std::string_view a, std::string_view b, int64_t grain, BinaryLoop loop);

}  // namespace anabranch
