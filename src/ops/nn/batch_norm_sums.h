// A batch norm whose batch is spread over several devices: sums over the channels of a slice, and results from the sums
// of all slices. One channel per call, by the lanes of a row; the same functions on the CPU. Sums are in double, so
// that a sum of squares is as accurate as one around the mean.
#pragma once
#include <cmath>

#include "ops/device/args_norm.h"

namespace anabranch::nn {

// Two sums per channel, all first ones before the second ones, followed by the number of elements per channel.
struct SumsOfParts {
  const double* all;
  int64_t channels;
  AB_HD double first(int64_t k) const { return all[k]; }
  AB_HD double second(int64_t k) const { return all[channels + k]; }
  AB_HD double count() const { return all[2 * channels]; }
  AB_HD bool pass() const { return count() == 1; }  // one element has no variance to divide by
};

// Tensors are [outer, channels, inner]. Each function uses some of the operands; see NormSumsArgs.
template <class T> struct NormBySums {
  using P = device::Compute<T>;
  const T *x, *dy;
  const P *scale, *bias, *mean, *variance;
  const float* momentum_in;
  const P *used_in, *inverse_in;
  SumsOfParts sums, own;
  T* y;
  P *mean_out, *variance_out, *used, *inverse, *dscale, *dbias;
  double* sums_out;
  int64_t outer, channels, inner;
  double epsilon, momentum;

  // At::get<E>(operand): its address.
  template <class At> static NormBySums of(const device::NormSumsArgs& a) {
    const auto t = [](const auto& o) { return At::template get<T>(o); };
    const auto p = [](const auto& o) { return At::template get<P>(o); };
    const auto sums = [&](const auto& o) { return SumsOfParts{At::template get<double>(o), a.channels}; };
    const auto* momentum_in = At::template get<float>(a.momentum_in);
    double* sums_out = At::template get<double>(a.sums);
    return {t(a.x),        t(a.dy),           p(a.scale),      p(a.bias),       p(a.mean),        p(a.variance),
            momentum_in,   p(a.used_in),      p(a.inverse_in), sums(a.sums_in), sums(a.sums_own), t(a.y),
            p(a.mean_out), p(a.variance_out), p(a.used),       p(a.inverse),    p(a.dscale),      p(a.dbias),
            sums_out,      a.outer,           a.channels,      a.inner,         a.epsilon,        a.momentum};
  }

  AB_HD int64_t count() const { return outer * inner; }  // elements of a channel
  AB_HD int64_t at(int64_t k, int64_t i) const { return (i / inner * channels + k) * inner + i % inner; }

  // Sums of x and its squares; with dy, of dy and of dy times the normalized x.
  template <class L> AB_HD void add_up(const L& lanes, int64_t k) const {
    const double middle = dy ? used_in[k] : 0, inv = dy ? inverse_in[k] : 0;
    double first = 0, second = 0;
    for (int64_t i = lanes.index(); i < count(); i += lanes.count()) {
      const double value = device::load(x[at(k, i)]), g = dy ? device::load(dy[at(k, i)]) : value;
      first += g;
      second += g * (dy ? (value - middle) * inv : value);
    }
    first = lanes.sum(first);
    second = lanes.sum(second);
    if (lanes.index() != 0) return;
    sums_out[k] = first;
    sums_out[channels + k] = second;
    if (k == 0) sums_out[2 * channels] = static_cast<double>(count());
  }

  // y, and the moving statistics, from the sums of x over all slices.
  template <class L> AB_HD void normalize(const L& lanes, int64_t k) const {
    const double n = sums.count(), middle = n > 0 ? sums.first(k) / n : 0;
    const double spread = n > 0 ? sums.second(k) / n - middle * middle : 0;
    const double v = spread < 0 ? 0 : spread;  // keeps NaN
    const P m = static_cast<P>(middle), inv = static_cast<P>(1 / sqrt(v + epsilon)), factor = scale[k] * inv;
    if (lanes.index() == 0) move(k, m, static_cast<P>(v), inv);
    for (int64_t i = lanes.index(); i < count(); i += lanes.count()) {
      const P value = device::load(x[at(k, i)]);
      device::store(y + at(k, i), sums.pass() ? value : value * factor + (bias[k] - m * factor));
    }
  }

  AB_HD void move(int64_t k, P m, P v, P inv) const {
    const bool stays = sums.count() <= 1;
    const P keep = stays ? P{1} : static_cast<P>(momentum_in ? *momentum_in : momentum);
    used[k] = stays ? P{0} : m;
    inverse[k] = stays ? P{0} : inv;
    if (mean_out) mean_out[k] = stays ? mean[k] : mean[k] * keep + m * (1 - keep);
    if (variance_out) variance_out[k] = stays ? variance[k] : variance[k] * keep + v * (1 - keep);
  }

  // y: dx from the sums of dy over all slices; dscale and dbias are those of this slice, because they are summed like
  // those of other layers.
  template <class L> AB_HD void differentiate(const L& lanes, int64_t k) const {
    const double share = sums.count() > 0 ? 1 / sums.count() : 0;
    const P mean_g = static_cast<P>(sums.first(k) * share), m = used_in[k], inv = inverse_in[k];
    const P factor = scale[k] * inv, slope = static_cast<P>(sums.second(k) * share) * inv;
    if (lanes.index() == 0 && dbias) dbias[k] = sums.pass() ? P{0} : static_cast<P>(own.first(k));
    if (lanes.index() == 0 && dscale) dscale[k] = sums.pass() ? P{0} : static_cast<P>(own.second(k));
    for (int64_t i = lanes.index(); i < count(); i += lanes.count()) {
      const P g = device::load(dy[at(k, i)]), value = device::load(x[at(k, i)]);
      device::store(y + at(k, i), sums.pass() ? g : factor * (g - mean_g - (value - m) * slope));
    }
  }
};

// The functions as bodies of kernels.
template <class T> struct AddUp {
  NormBySums<T> norm;
  template <class L> AB_HD void operator()(const L& lanes, int64_t k) const { norm.add_up(lanes, k); }
};
template <class T> struct Normalize {
  NormBySums<T> norm;
  template <class L> AB_HD void operator()(const L& lanes, int64_t k) const { norm.normalize(lanes, k); }
};
template <class T> struct Differentiate {
  NormBySums<T> norm;
  template <class L> AB_HD void operator()(const L& lanes, int64_t k) const { norm.differentiate(lanes, k); }
};

}  // namespace anabranch::nn
