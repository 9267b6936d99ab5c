// float32 loops over contiguous arrays in the widest vectors of the machine (Highway, chosen at run time). Element i of
// an output depends only on element i of the inputs, not on where an array starts or ends, so a loop may be split
// anywhere. An output may be the same array as an input, but must not overlap it otherwise. Single-threaded.
//
// Transcendental functions are within 4 ulp of the exact value, tanh within 7. Sums use eight partial sums for every
// vector width: the same bits on every machine.
#pragma once
#include <cstdint>

namespace anabranch::simd {

// out[i] = f(x[i])
void relu(const float* x, float* out, int64_t n);
void square(const float* x, float* out, int64_t n);
void sqrt(const float* x, float* out, int64_t n);
void exp(const float* x, float* out, int64_t n);
void log(const float* x, float* out, int64_t n);
void tanh(const float* x, float* out, int64_t n);
void sigmoid(const float* x, float* out, int64_t n);
void affine(const float* x, float scale, float bias, float* out, int64_t n);  // x * scale + bias
void shift(const float* x, float from, float least, float* out, int64_t n);   // max(x - from, least); keeps NaN

// out[i] = f(a[i], b[i])
void add(const float* a, const float* b, float* out, int64_t n);
void sub(const float* a, const float* b, float* out, int64_t n);
void mul(const float* a, const float* b, float* out, int64_t n);
void div(const float* a, const float* b, float* out, int64_t n);
void max(const float* a, const float* b, float* out, int64_t n);
void min(const float* a, const float* b, float* out, int64_t n);
void axpy(float alpha, const float* x, float* y, int64_t n);  // y += alpha * x

// Adds `row` to each of the rows of x, which are `stride` elements apart.
void add_to_rows(float* x, int64_t stride, const float* row, int64_t rows, int64_t n);

// dx[i] from the output y and its gradient dy
void relu_grad(const float* y, const float* dy, float* dx, int64_t n);     // dy times (y > 0)
void sigmoid_grad(const float* y, const float* dy, float* dx, int64_t n);  // dy * y * (1 - y)
void tanh_grad(const float* y, const float* dy, float* dx, int64_t n);     // dy * (1 - y^2)

// one number from an array
float sum(const float* x, int64_t n);
float sum_squares(const float* x, int64_t n);
float dot(const float* a, const float* b, int64_t n);
float max_of(const float* x, int64_t n);  // n >= 1

const char* target_name();  // the instruction set in use: "AVX2", ...

}  // namespace anabranch::simd
