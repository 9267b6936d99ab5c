// Gradients of functions of one float32 number, as loops over the widest SIMD vectors of the machine. Each computes
// dx[i] from dy[i] and either x[i] or y[i] = f(x[i]). As in simd_functions.h, errors are a few units in the last place
// of the result's largest term. NaN in x, y or dy gives NaN, except where noted.
#pragma once
#include <cstdint>

namespace anabranch::simd {

void sin_grad(const float* x, const float* dy, float* dx, int64_t n);
void cos_grad(const float* x, const float* dy, float* dx, int64_t n);
void logsigmoid_grad(const float* x, const float* dy, float* dx, int64_t n);
void tanh_shrink_grad(const float* x, const float* dy, float* dx, int64_t n);

// p: the parameters of the op, as in simd_functions.h.
void stanh_grad(const float* x, const float* dy, const float* p, float* dx, int64_t n);
// dx = dy * max(1, p[0]) if y > 0, else dy * min(1, p[0]). A NaN in y counts as not above 0.
void leaky_relu_grad(const float* y, const float* dy, const float* p, float* dx, int64_t n);
void elu_grad(const float* x, const float* dy, const float* p, float* dx, int64_t n);
void swish_grad(const float* x, const float* dy, const float* p, float* dx, int64_t n);
void mish_grad(const float* x, const float* dy, const float* p, float* dx, int64_t n);
void soft_relu_grad(const float* y, const float* dy, const float* p, float* dx, int64_t n);
void tanh_gelu_grad(const float* x, const float* dy, const float* p, float* dx, int64_t n);

}  // namespace anabranch::simd
