// Images in the layout that the kernel library computes in: [N, C / B, H, W, B] with B adjacent channels, in a tensor
// whose shape stays [N, C, H, W]. A graph pass (graph/passes/blocked_layout.cc) sets attributes of the ops; saved
// programs never contain them.
#pragma once
#include <cstdint>

#include "ir/op.h"

namespace anabranch::nn {

inline constexpr const char* kBlockedInput = "blocked_input";    // of convolutions and their gradients
inline constexpr const char* kBlockedOutput = "blocked_output";  // likewise
inline constexpr const char* kBlocked = "blocked";               // of ops whose images all have this layout

inline bool is_blocked(const ir::Op& op, const char* attr) { return op.has_attr(attr) && op.attr<bool>(attr); }

// B: the number of float32 in a vector of this machine, 8 or 16.
int64_t channel_block();

// Vectorized loops over `n` pixels of B channels each. Every channel is summed pixel after pixel in four partial sums,
// for every vector width.
namespace blocked {
struct Loops {
  void (*sum)(const float* x, int64_t n, float* sums);
  void (*sum_squares)(const float* x, const float* center, int64_t n, float* sums);  // of x - center
  // sums of g, and of g (x - center)
  void (*sum_products)(const float* g, const float* x, const float* center, int64_t n, float* sum_g, float* sum_gx);
  // x factor + offset
  void (*affine)(const float* x, const float* factor, const float* offset, int64_t n, float* out);
  // g a + x b + c
  void (*combine)(const float* g, const float* x, const float* a, const float* b, const float* c, int64_t n,
                  float* out);
};
const Loops& loops();  // those of this machine
}  // namespace blocked

}  // namespace anabranch::nn
