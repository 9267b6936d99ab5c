// One row of a layer normalisation and of its gradient, float32 in the widest vectors of the machine. Sums are taken in
// sixteen parts whatever their width, as sums.h takes them: the same bits on every machine.
#pragma once
#include <cstdint>

namespace anabranch::nn {

// y = (x - mean) / sqrt(variance + epsilon) scale + bias; scale and bias may be null. y may be x.
void normalize_row(const float* x, const float* scale, const float* bias, int64_t width, float epsilon, float* y,
                   float* mean, float* variance);
// dx = inv (h - mean(h) - xhat mean(h xhat)) with h = dy scale and xhat = (x - mean) inv.
void normalize_grad_row(const float* x, const float* dy, const float* scale, int64_t width, float mean, float inv,
                        float* dx);
// products += dy xhat, sums += dy
void add_norm_sums(const float* x, const float* dy, int64_t width, float mean, float inv, double* products,
                   double* sums);

}  // namespace anabranch::nn
