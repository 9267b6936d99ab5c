// A batch norm whose batch is spread over several devices: sums over the channels of a slice, and results from the sums
// of all slices. One channel per call, by the lanes of a row; the same functions on the CPU. Sums are in double, so
// that a sum of squares is as accurate as one around the mean.
#pragma once
#include <cmath>

#include "ops/device/element.h"

namespace anabranch::nn {

// Elements of channels in [outer, channels, inner].
struct ChannelWalk {
  int64_t outer, channels, inner;
  AB_HD int64_t count() const { return outer * inner; }
  AB_HD int64_t at(int64_t k, int64_t i) const { return (i / inner * channels + k) * inner + i % inner; }
};

// Two sums per channel, all first ones before the second ones, followed by the number of elements per channel.
struct SumsOfParts {
  const double* all;
  int64_t channels;
  AB_HD double first(int64_t k) const { return all[k]; }
  AB_HD double second(int64_t k) const { return all[channels + k]; }
  AB_HD double count() const { return all[2 * channels]; }
  AB_HD bool pass() const { return count() == 1; }  // one element has no variance to divide by
};

// Sums of x and its squares; with dy, of dy and of dy times the normalized x.
template <class T> struct ChannelSumsOf {
  using P = device::Compute<T>;
  const T *x, *dy;
  const P *used, *inverse;
  double* sums;
  ChannelWalk walk;

  template <class L> AB_HD void operator()(const L& lanes, int64_t k) const {
    const double middle = dy ? used[k] : 0, inv = dy ? inverse[k] : 0;
    double first = 0, second = 0;
    for (int64_t i = lanes.index(); i < walk.count(); i += lanes.count()) {
      const double value = device::load(x[walk.at(k, i)]), g = dy ? device::load(dy[walk.at(k, i)]) : value;
      first += g;
      second += g * (dy ? (value - middle) * inv : value);
    }
    first = lanes.sum(first);
    second = lanes.sum(second);
    if (lanes.index() != 0) return;
    sums[k] = first;
    sums[walk.channels + k] = second;
    if (k == 0) sums[2 * walk.channels] = static_cast<double>(walk.count());
  }
};

// y, and the moving statistics, from the sums of x over all slices.
template <class T> struct NormaliseBySums {
  using P = device::Compute<T>;
  const T* x;
  const P *scale, *bias, *mean, *variance;
  const float* momentum_in;
  SumsOfParts sums;
  T* y;
  P *mean_out, *variance_out, *used, *inverse;
  ChannelWalk walk;
  double momentum, epsilon;

  template <class L> AB_HD void operator()(const L& lanes, int64_t k) const {
    const double n = sums.count(), middle = n > 0 ? sums.first(k) / n : 0;
    const double spread = n > 0 ? sums.second(k) / n - middle * middle : 0;
    const double v = spread < 0 ? 0 : spread;  // keeps NaN
    const P m = static_cast<P>(middle), inv = static_cast<P>(1 / sqrt(v + epsilon)), factor = scale[k] * inv;
    if (lanes.index() == 0) move(k, m, static_cast<P>(v), inv);
    for (int64_t i = lanes.index(); i < walk.count(); i += lanes.count()) {
      const P value = device::load(x[walk.at(k, i)]);
      device::store(y + walk.at(k, i), sums.pass() ? value : value * factor + (bias[k] - m * factor));
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
};

// dx from the sums of dy over all slices; dscale and dbias are those of this slice, because they are summed like those
// of other layers.
template <class T> struct GradientBySums {
  using P = device::Compute<T>;
  const T *x, *dy;
  const P *scale, *used, *inverse;
  SumsOfParts sums, own;
  T* dx;
  P *dscale, *dbias;
  ChannelWalk walk;

  template <class L> AB_HD void operator()(const L& lanes, int64_t k) const {
    const double share = sums.count() > 0 ? 1 / sums.count() : 0;
    const P mean_g = static_cast<P>(sums.first(k) * share), m = used[k], inv = inverse[k], factor = scale[k] * inv;
    const P slope = static_cast<P>(sums.second(k) * share) * inv;
    if (lanes.index() == 0 && dbias) dbias[k] = sums.pass() ? P{0} : static_cast<P>(own.first(k));
    if (lanes.index() == 0 && dscale) dscale[k] = sums.pass() ? P{0} : static_cast<P>(own.second(k));
    for (int64_t i = lanes.index(); i < walk.count(); i += lanes.count()) {
      const P g = device::load(dy[walk.at(k, i)]), value = device::load(x[walk.at(k, i)]);
      device::store(dx + walk.at(k, i), sums.pass() ? g : factor * (g - mean_g - (value - m) * slope));
    }
  }
};

}  // namespace anabranch::nn
