// Gradients of functions of one float32 number as loops in the widest vectors of the machine: dx[i] from x[i] or
// y[i] = f(x[i]), and dy[i]. The rules of simd_functions.h hold here: errors are a few units in the last place of the
// result's largest term, and NaN in x, y or dy gives NaN.
#pragma once
#include <cstdint>

namespace anabranch::simd {

void sin_grad(const float* x, const float* dy, float* dx, int64_t n);
void cos_grad(const float* x, const float* dy, float* dx, int64_t n);
void logsigmoid_grad(const float* x, const float* dy, float* dx, int64_t n);
void tanh_shrink_grad(const float* x, const float* dy, float* dx, int64_t n);

// With the parameters p of the op, as in simd_functions.h
void stanh_grad(const float* x, const float* dy, const float* p, float* dx, int64_t n);
// dy where y > 0, else p[0] dy, for a NaN in y too
void leaky_relu_grad(const float* y, const float* dy, const float* p, float* dx, int64_t n);
void elu_grad(const float* x, const float* dy, const float* p, float* dx, int64_t n);
void swish_grad(const float* x, const float* dy, const float* p, float* dx, int64_t n);
void mish_grad(const float* x, const float* dy, const float* p, float* dx, int64_t n);
void soft_relu_grad(const float* y, const float* dy, const float* p, float* dx, int64_t n);
void tanh_gelu_grad(const float* x, const float* dy, const float* p, float* dx, int64_t n);

}  // namespace anabranch::simd
