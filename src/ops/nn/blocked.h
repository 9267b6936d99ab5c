// Images in the layout that the kernel library computes in: [N, C / B, H, W, B] with B channels next to each other, in
// the memory of a tensor whose shape stays [N, C, H, W]. Ops are told by attributes that a graph pass sets
// (graph/passes/blocked_layout.cc); no saved program has them.
#pragma once
#include <cstdint>

#include "ir/op.h"

namespace anabranch::nn {

inline constexpr const char* kBlockedInput = "blocked_input";    // of convolutions and their gradients
inline constexpr const char* kBlockedOutput = "blocked_output";  // likewise
inline constexpr const char* kBlocked = "blocked";               // of ops whose images all have one layout

inline bool is_blocked(const ir::Op& op, const char* attr) { return op.has_attr(attr) && op.attr<bool>(attr); }

// B: as many float32 as a vector of this machine holds, 8 or 16.
int64_t channel_block();

// Loops over `n` pixels of B channels each, in vectors. Every channel's sum is taken pixel after pixel in four parts,
// whatever the width of the machine's vectors.
namespace blocked {
void sum(const float* x, int64_t n, float* sums);
void sum_squares(const float* x, const float* center, int64_t n, float* sums);  // of x - center
// sums of g, and of g (x - center)
void sum_products(const float* g, const float* x, const float* center, int64_t n, float* sum_g, float* sum_gx);
void affine(const float* x, const float* factor, const float* offset, int64_t n, float* out);  // x factor + offset
// g a + x b + c
void combine(const float* g, const float* x, const float* a, const float* b, const float* c, int64_t n, float* out);
}  // namespace blocked

}  // namespace anabranch::nn
