// One row of layer normalization and of its gradient, float32 in the widest vectors of the machine. Uses sixteen
// partial sums for every width, like sums.h: the same bits on every machine.
#pragma once
#include <cstdint>

namespace anabranch::nn {

// y = (x - mean) / sqrt(variance + epsilon) scale + bias; scale and bias may be null. y may alias x.
void normalize_row(const float* x, const float* scale, const float* bias, int64_t width, float epsilon, float* y,
                   float* mean, float* variance);
// dx = inv (h - mean(h) - xhat mean(h xhat)) with h = dy scale and xhat = (x - mean) inv.
void normalize_grad_row(const float* x, const float* dy, const float* scale, int64_t width, float mean, float inv,
                        float* dx);
// products += dy xhat, sums += dy
void add_norm_sums(const float* x, const float* dy, int64_t width, float mean, float inv, double* products,
                   double* sums);

}  // namespace anabranch::nn
