#include "ops/nn/layer_norm_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/layer_norm_rows.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include <cmath>

#include "hwy/highway.h"
#include "ops/kernels/simd_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::nn {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = simd::HWY_NAMESPACE::SumTag;
using V = hn::Vec<D>;
using simd::HWY_NAMESPACE::sum_of;

// Plain loops, which the compiler vectorizes for this instruction set.
void NormalizeRow(const float* x, const float* scale, const float* bias, int64_t width, float epsilon, float* y,
                  float* mean, float* variance) {
  const D d;
  const float m = sum_of(
                      width, [](V v) HWY_ATTR { return v; }, x) /
                  static_cast<float>(width);
  const V vm = hn::Set(d, m);
  const float v = sum_of(
                      width,
                      [=](V a) HWY_ATTR {
                        const V off = hn::Sub(a, vm);
                        return hn::Mul(off, off);
                      },
                      x) /
                  static_cast<float>(width);
  const float inv = 1 / std::sqrt(v + epsilon);
  if (scale && bias) {
    for (int64_t i = 0; i < width; ++i) y[i] = (x[i] - m) * inv * scale[i] + bias[i];
  } else if (scale) {
    for (int64_t i = 0; i < width; ++i) y[i] = (x[i] - m) * inv * scale[i];
  } else if (bias) {
    for (int64_t i = 0; i < width; ++i) y[i] = (x[i] - m) * inv + bias[i];
  } else {
    for (int64_t i = 0; i < width; ++i) y[i] = (x[i] - m) * inv;
  }
  *mean = m;
  *variance = v;
}

void NormalizeGradRow(const float* x, const float* dy, const float* scale, int64_t width, float mean, float inv,
                      float* dx) {
  const D d;
  const V vm = hn::Set(d, mean), vi = hn::Set(d, inv);
  const auto hat = [=](V a) HWY_ATTR { return hn::Mul(hn::Sub(a, vm), vi); };
  const float count = static_cast<float>(width);
  float mean_h, slope;
  if (scale) {
    mean_h = sum_of(
                 width, [](V g, V s) HWY_ATTR { return hn::Mul(g, s); }, dy, scale) /
             count;
    slope = sum_of(
                width, [=](V a, V g, V s) HWY_ATTR { return hn::Mul(hn::Mul(g, s), hat(a)); }, x, dy, scale) /
            count;
    for (int64_t i = 0; i < width; ++i) dx[i] = inv * (dy[i] * scale[i] - mean_h - (x[i] - mean) * inv * slope);
  } else {
    mean_h = sum_of(
                 width, [](V g) HWY_ATTR { return g; }, dy) /
             count;
    slope = sum_of(
                width, [=](V a, V g) HWY_ATTR { return hn::Mul(g, hat(a)); }, x, dy) /
            count;
    for (int64_t i = 0; i < width; ++i) dx[i] = inv * (dy[i] - mean_h - (x[i] - mean) * inv * slope);
  }
}

void AddNormSums(const float* x, const float* dy, int64_t width, float mean, float inv, double* products,
                 double* sums) {
  for (int64_t i = 0; i < width; ++i) {
    products[i] += static_cast<double>(dy[i] * ((x[i] - mean) * inv));
    sums[i] += static_cast<double>(dy[i]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::nn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::nn {
HWY_EXPORT(NormalizeRow);
HWY_EXPORT(NormalizeGradRow);
HWY_EXPORT(AddNormSums);
void normalize_row(const float* x, const float* scale, const float* bias, int64_t width, float epsilon, float* y,
                   float* mean, float* variance) {
  HWY_DYNAMIC_DISPATCH(NormalizeRow)(x, scale, bias, width, epsilon, y, mean, variance);
}
void normalize_grad_row(const float* x, const float* dy, const float* scale, int64_t width, float mean, float inv,
                        float* dx) {
  HWY_DYNAMIC_DISPATCH(NormalizeGradRow)(x, dy, scale, width, mean, inv, dx);
}
void add_norm_sums(const float* x, const float* dy, int64_t width, float mean, float inv, double* products,
                   double* sums) {
  HWY_DYNAMIC_DISPATCH(AddNormSums)(x, dy, width, mean, inv, products, sums);
}
}  // namespace anabranch::nn
#endif
