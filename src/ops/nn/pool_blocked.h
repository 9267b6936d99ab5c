// Maxima and averages of windows of images in blocked layout (ops/nn/blocked.h), with their gradients: B channels at a
// time, in the order of the plain loops of pool_planes.h, whose bits they have. The images are `d.batch` times
// `d.channels` / B, each of [H, W, B].
#pragma once
#include "opdef/kernel_context.h"
#include "ops/nn/pool_dims.h"

namespace anabranch::nn {

void blocked_max_pool(const KernelContext& c, const PoolDims& d, const float* x, float* out);
void blocked_mean_pool(const KernelContext& c, const PoolDims& d, const float* x, float* out);
void blocked_max_pool_grad(const KernelContext& c, const PoolDims& d, const float* x, const float* out,
                           const float* dout, float* dx);
void blocked_mean_pool_grad(const KernelContext& c, const PoolDims& d, const float* dout, float* dx);

}  // namespace anabranch::nn
