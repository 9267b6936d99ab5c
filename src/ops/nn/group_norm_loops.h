// Normalization of one group of channels of one sample, and its gradient.
#pragma once
#include <cmath>

#include "core/shape.h"
#include "ops/kernels/sums.h"
#include "ops/kernels/wide.h"

namespace anabranch::nn {

// A sample as [channels, inner], or [inner, channels] with the channels last; channels in `groups` equal groups.
struct GroupDims {
  int64_t samples, channels, inner, groups;
  bool last;
  GroupDims(const Shape& x, bool channels_last, int64_t groups_in)
      : samples(x[0]),
        channels(channels_last ? x[x.rank() - 1] : x[1]),
        inner(channels_last ? x.numel(1, x.rank() - 1) : x.numel(2, x.rank())),
        groups(groups_in ? groups_in : channels),
        last(channels_last) {}
  int64_t width() const { return groups ? channels / groups : 0; }  // channels of a group
  int64_t count() const { return width() * inner; }                 // elements of a group
  int64_t channel(int64_t g, int64_t i) const { return g * width() + (last ? i % width() : i / inner); }
  // Element i of group g of sample n.
  int64_t at(int64_t n, int64_t g, int64_t i) const {
    const int64_t base = n * channels * inner;
    return last ? base + i / width() * channels + g * width() + i % width() : base + g * width() * inner + i;
  }
};

template <class T> struct GroupSlots {
  const T *x, *scale, *bias, *dy, *normalized;  // normalized: Y, for a gradient without X
  T *y, *mean, *variance, *dx, *dscale, *dbias;
};

// Channels first: a group is contiguous.
template <class T>
void normalize_channels(const GroupDims& d, const GroupSlots<T>& s, T epsilon, bool inverse, int64_t n, int64_t g) {
  const T* x = s.x + d.at(n, g, 0);
  T* y = s.y + d.at(n, g, 0);
  const T count = static_cast<T>(d.count());
  const T mean = sum_of<T>(d.count(), [=](int64_t i) { return x[i]; }) / count;
  const T variance = sum_of<T>(d.count(), [=](int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / count;
  const T inv = 1 / std::sqrt(variance + epsilon);
  for (int64_t k = 0; k < d.width(); ++k) {
    const int64_t channel = g * d.width() + k;
    const T scale = s.scale ? s.scale[channel] : T{1}, bias = s.bias ? s.bias[channel] : T{0};
    for (int64_t i = k * d.inner; i < (k + 1) * d.inner; ++i) y[i] = (x[i] - mean) * inv * scale + bias;
  }
  s.mean[n * d.groups + g] = mean;
  s.variance[n * d.groups + g] = inverse ? inv : variance;
}

template <class T>
void normalize(const GroupDims& d, const GroupSlots<T>& s, T epsilon, bool inverse, int64_t n, int64_t g) {
  if (!d.last) return normalize_channels(d, s, epsilon, inverse, n, g);
  const T count = static_cast<T>(d.count());
  const auto value = [&](int64_t i) { return s.x[d.at(n, g, i)]; };
  const T mean = sum_of<T>(d.count(), value) / count;
  const T variance = sum_of<T>(d.count(), [&](int64_t i) { return (value(i) - mean) * (value(i) - mean); }) / count;
  const T inv = 1 / std::sqrt(variance + epsilon);
  for (int64_t i = 0; i < d.count(); ++i) {
    const int64_t k = d.channel(g, i);
    s.y[d.at(n, g, i)] = (value(i) - mean) * inv * (s.scale ? s.scale[k] : T{1}) + (s.bias ? s.bias[k] : T{0});
  }
  s.mean[n * d.groups + g] = mean;
  s.variance[n * d.groups + g] = inverse ? inv : variance;
}

// xhat from X, or from Y if X is not given; then a scale of 0 has erased it.
template <class T> T normalized(const GroupSlots<T>& s, T mean, T inv, int64_t at, int64_t channel) {
  if (!s.normalized) return (s.x[at] - mean) * inv;
  const T value = s.normalized[at] - (s.bias ? s.bias[channel] : T{0});
  return s.scale && s.scale[channel] != 0 ? value / s.scale[channel] : value;
}

// dx = inv (h - mean(h) - xhat mean(h xhat)) with h = dy scale. If `centered` is false, mean(h) is omitted.
template <class T>
void differentiate(const GroupDims& d, const GroupSlots<T>& s, bool centered, T inv, int64_t n, int64_t g) {
  const T count = static_cast<T>(d.count()), mean = s.mean ? s.mean[n * d.groups + g] : T{0};
  const auto hat = [&](int64_t i) { return normalized(s, mean, inv, d.at(n, g, i), d.channel(g, i)); };
  const auto h = [&](int64_t i) { return s.dy[d.at(n, g, i)] * (s.scale ? s.scale[d.channel(g, i)] : T{1}); };
  if (s.dx) {
    const T mean_h = centered ? sum_of<T>(d.count(), h) / count : T{0};
    const T slope = sum_of<T>(d.count(), [&](int64_t i) { return h(i) * hat(i); }) / count;
    for (int64_t i = 0; i < d.count(); ++i) s.dx[d.at(n, g, i)] = inv * (h(i) - mean_h - hat(i) * slope);
  }
  for (int64_t i = 0; i < d.count(); ++i) {
    const int64_t k = d.channel(g, i);
    if (s.dscale) s.dscale[k] += s.dy[d.at(n, g, i)] * hat(i);
    if (s.dbias) s.dbias[k] += s.dy[d.at(n, g, i)];
  }
}

// The same of contiguous groups with X given, channel by channel; `room` holds 2 * count() numbers.
template <class T>
void differentiate_channels(const GroupDims& d, const GroupSlots<T>& s, bool centered, T inv, int64_t n, int64_t g,
                            T* room) {
  const int64_t count = d.count(), first = g * d.width(), inner = d.inner;
  const T mean = s.mean ? s.mean[n * d.groups + g] : T{0};
  const T *x = s.x + d.at(n, g, 0), *dy = s.dy + d.at(n, g, 0);
  T *hat = room, *h = room + count;
  in_wide_vectors([=] {
    for (int64_t i = 0; i < count; ++i) hat[i] = (x[i] - mean) * inv;
  });
  if (s.dx) {
    T* dx = s.dx + d.at(n, g, 0);
    const T* scale = s.scale ? s.scale + first : nullptr;
    in_wide_vectors([=, width = d.width()] {
      for (int64_t k = 0; k < width; ++k) {
        const T factor = scale ? scale[k] : T{1};
        for (int64_t i = k * inner; i < (k + 1) * inner; ++i) h[i] = dy[i] * factor;
      }
      const T mean_h = centered ? sum_of<T>(count, [=](int64_t i) { return h[i]; }) / static_cast<T>(count) : T{0};
      const T slope = sum_of<T>(count, [=](int64_t i) { return h[i] * hat[i]; }) / static_cast<T>(count);
      for (int64_t i = 0; i < count; ++i) dx[i] = inv * (h[i] - mean_h - hat[i] * slope);
    });
  }
  if (s.dscale)
    add_in_order(d.width(), inner, s.dscale + first,
                 [=](int64_t k, int64_t i) { return dy[k * inner + i] * hat[k * inner + i]; });
  if (s.dbias) add_in_order(d.width(), inner, s.dbias + first, [=](int64_t k, int64_t i) { return dy[k * inner + i]; });
}

}  // namespace anabranch::nn
