// More functions of one float32 number as loops in the widest vectors of the machine; the rules of simd.h, which has
// the most common ones, hold here. If a true result is infinite or NaN, so is the loop's. Errors are a few units in the
// last place of the result; for erf, gelu and similar functions 1e-6 relative to it in their tails.
#pragma once
#include <cstdint>

namespace anabranch::simd {

void abs(const float* x, float* out, int64_t n);
void ceil(const float* x, float* out, int64_t n);
void floor(const float* x, float* out, int64_t n);
void round(const float* x, float* out, int64_t n);  // halves away from zero
void reciprocal(const float* x, float* out, int64_t n);
void rsqrt(const float* x, float* out, int64_t n);  // 1 / sqrt(x)
void log1p(const float* x, float* out, int64_t n);
void expm1(const float* x, float* out, int64_t n);
void sin(const float* x, float* out, int64_t n);
void cos(const float* x, float* out, int64_t n);
void acos(const float* x, float* out, int64_t n);
void asin(const float* x, float* out, int64_t n);
void atan(const float* x, float* out, int64_t n);
void erf(const float* x, float* out, int64_t n);
void softplus(const float* x, float* out, int64_t n);    // ln(1 + e^x)
void logsigmoid(const float* x, float* out, int64_t n);  // -softplus(-x)
void tanh_shrink(const float* x, float* out, int64_t n);
void gelu(const float* x, float* out, int64_t n);  // x P(Z <= x), Z standard normal

// dx[i] from x[i] and dy[i]
void gelu_grad(const float* x, const float* dy, float* dx, int64_t n);
void softplus_grad(const float* x, const float* dy, float* dx, int64_t n);
void erf_grad(const float* x, const float* dy, float* dx, int64_t n);

void pow(const float* x, const float* y, float* out, int64_t n);  // x to the power y, correct to 1 ulp

// With the parameters p of the op
void leaky_relu(const float* x, const float* p, float* out, int64_t n);   // max(x, p[0] x)
void hard_shrink(const float* x, const float* p, float* out, int64_t n);  // x once for x > p[0], once for x < -p[0]
void softshrink(const float* x, const float* p, float* out, int64_t n);   // x - p[0] and x + p[0] there
void stanh(const float* x, const float* p, float* out, int64_t n);        // p[1] tanh(p[0] x)
void elu(const float* x, const float* p, float* out, int64_t n);          // max(x, 0) + min(p[0] (e^x - 1), 0)
void selu(const float* x, const float* p, float* out, int64_t n);         // p[0] times elu with p[1]
void swish(const float* x, const float* p, float* out, int64_t n);        // x sigmoid(p[0] x)
// x tanh(s), s = softplus(x); with p[0] > 0, s is x above p[0] and e^x below -p[0]
void mish(const float* x, const float* p, float* out, int64_t n);
void soft_relu(const float* x, const float* p, float* out, int64_t n);  // softplus of x clipped to [-p[0], p[0]]
void tanh_gelu(const float* x, const float* p, float* out, int64_t n);  // x / 2 (1 + tanh(p[0] (x + p[1] x^3)))

}  // namespace anabranch::simd
