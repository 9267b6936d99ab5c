#include "ops/nn/layer_norm_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/layer_norm_rows.cc"
#include "hwy/foreach_target.h"
// foreach_target.h stands first: it includes this file once for every instruction set
#include <cmath>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::nn {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;

constexpr int64_t kParts = 16, kBlock = 2048, kLanes = hn::MaxLanes(D());
constexpr int64_t kVectors = kParts / kLanes;

// `count` numbers, then zeros.
HWY_INLINE V padded(const float* from, int64_t count) {
  HWY_ALIGN float buffer[kParts] = {};
  for (int64_t k = 0; k < count; ++k) buffer[k] = from[k];
  return hn::Load(D(), buffer);
}

// The sum of fn of n numbers of each array, in blocks that are added up in double.
template <class Fn, class... Arrays> HWY_INLINE float sum_of(int64_t n, Fn&& fn, const Arrays*... in) {
  const D d;
  double sum = 0;
  for (int64_t from = 0; from < n; from += kBlock) {
    const int64_t to = n - from < kBlock ? n : from + kBlock;
    V part[kVectors];
    for (V& p : part) p = hn::Zero(d);
    int64_t i = from;
    for (; i + kParts <= to; i += kParts) {
      for (int64_t k = 0; k < kVectors; ++k) part[k] = hn::Add(part[k], fn(hn::LoadU(d, in + i + k * kLanes)...));
    }
    for (int64_t k = 0; i < to; ++k, i += kLanes) {
      const int64_t count = to - i < kLanes ? to - i : kLanes;
      const auto there = hn::FirstN(d, static_cast<size_t>(count));
      part[k] = hn::Add(part[k], hn::IfThenElseZero(there, fn(padded(in + i, count)...)));
    }
    HWY_ALIGN float parts[kParts];
    for (int64_t k = 0; k < kVectors; ++k) hn::Store(part[k], d, parts + k * kLanes);
    for (int64_t half = kParts / 2; half > 0; half /= 2) {
      for (int64_t k = 0; k < half; ++k) parts[k] += parts[k + half];
    }
    sum += static_cast<double>(parts[0]);
  }
  return static_cast<float>(sum);
}

// Plain loops, which the compiler turns into vectors of this instruction set.
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
