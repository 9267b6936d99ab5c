// Elementwise float32 ops as loops over a piece of contiguous values, by op type: what fused_elementwise strings
// together. An op's kernel and its tile loop apply one function to each element, so they give the same bits.
#pragma once
#include <functional>
#include <string>

#include "ops/kernels/flat_loop.h"

namespace anabranch {

// in: the op's flattened inputs. `out` may be the same array as an input, but must not overlap it otherwise.
using TileLoop = std::function<void(const float* const* in, float* out, int64_t n)>;

struct TileOp {
  // Of an op with several outputs, `result` names the slot that the loop computes.
  std::function<TileLoop(const KernelArgs& op, const std::string& result)> make;
  int64_t grain;  // elements that are worth handing to another worker, see flat_loop.h
};

bool declare_tile(const std::string& type, TileOp op);  // at program start
const TileOp* find_tile(const std::string& type);       // null when the type has no tile loop

// Ops of one or two tensors whose float32 kernel is a loop of simd.h.
bool declare_tile(const std::string& type, const char* x, int64_t grain, UnaryLoop loop);
bool declare_tile(const std::string& type, const char* a, const char* b, int64_t grain, BinaryLoop loop);

}  // namespace anabranch
