// The moved bins of regions, and the samples in them.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/detection/bin_taps.h"

namespace anabranch::detection {

// Four pixels with their weights, and the derivatives of their sum to the right and downwards.
template <class T> struct BinSample {
  std::array<int64_t, 4> at;
  std::array<T, 4> weight, right, down;
  BinSample(T x, T y, int64_t width) {
    const T left = std::floor(x), top = std::floor(y), far = std::ceil(x), low = std::ceil(y), u = x - left,
            v = y - top;
    const auto row = static_cast<int64_t>(top) * width, next = static_cast<int64_t>(low) * width;
    at = {row + static_cast<int64_t>(left), row + static_cast<int64_t>(far), next + static_cast<int64_t>(left),
          next + static_cast<int64_t>(far)};
    weight = {(1 - u) * (1 - v), u * (1 - v), (1 - u) * v, u * v};
    right = {v - 1, 1 - v, -v, v};
    down = {u - 1, -u, 1 - u, u};
  }
  T of(const T* plane, const std::array<T, 4>& by) const {
    return plane[at[0]] * by[0] + plane[at[1]] * by[1] + plane[at[2]] * by[2] + plane[at[3]] * by[3];
  }
};

// Geometry of the op, from its attributes.
template <class T> struct MovedRule {
  T scale, deviation;
  bool moved;
  int64_t samples;
  std::array<int64_t, 2> group, part;
  explicit MovedRule(const KernelArgs& op)
      : scale(static_cast<T>(op.attr<float>("spatial_scale"))),
        deviation(static_cast<T>(op.attr<float>("trans_std"))),
        moved(!op.attr<bool>("no_trans")),
        samples(op.attr<int32_t>("sample_per_part")) {
    for (size_t k : {size_t{0}, size_t{1}}) {
      group[k] = op.attr<std::vector<int32_t>>("group_size")[k];
      part[k] = op.attr<std::vector<int32_t>>("part_size")[k];
    }
  }
};

// A bin of an output channel: its pixels and its offset.
template <class T> struct MovedBin {
  T left, top, step_x, step_y, region_width, region_height;
  int64_t channel;  // of Input
  int64_t trans;    // index of the offset to the right; the offset downwards is part_size elements further
};

template <class T> class MovedBins {
 public:
  MovedBins(const MovedRule<T>& rule, const Shape& x, const Shape& out, const Shape& trans)
      : rule_(rule), p_(x, out), made_(out[1]), classes_(rule.moved ? trans[1] / 2 : 1) {}
  const Pooled& pooled() const { return p_; }
  int64_t classes() const { return classes_; }
  int64_t per_class() const { return made_ / classes_; }

  // Bin b of channel `made` of region r.
  MovedBin<T> at(const T* box, const T* trans, int64_t r, int64_t made, int64_t b) const {
    const int64_t i = b / p_.columns, j = b % p_.columns;
    const T left = std::round(box[0]) * rule_.scale - T(0.5), top = std::round(box[1]) * rule_.scale - T(0.5);
    const T width = std::max((std::round(box[2]) + 1) * rule_.scale - T(0.5) - left, T(0.1));
    const T height = std::max((std::round(box[3]) + 1) * rule_.scale - T(0.5) - top, T(0.1));
    MovedBin<T> bin{};
    bin.region_width = width;
    bin.region_height = height;
    bin.left = static_cast<T>(j) * width / static_cast<T>(p_.columns) + left;
    bin.top = static_cast<T>(i) * height / static_cast<T>(p_.rows) + top;
    bin.step_x = width / static_cast<T>(p_.columns) / static_cast<T>(rule_.samples);
    bin.step_y = height / static_cast<T>(p_.rows) / static_cast<T>(rule_.samples);
    const int64_t row = i * rule_.group[0] / p_.rows, column = j * rule_.group[1] / p_.columns;
    bin.channel = (made * rule_.group[0] + row) * rule_.group[1] + column;
    if (!rule_.moved) return bin;
    const int64_t part = i * rule_.part[0] / p_.rows * rule_.part[1] + j * rule_.part[1] / p_.columns;
    bin.trans = (r * classes_ + made / per_class()) * 2 * part_plane() + part;
    bin.left += trans[bin.trans] * rule_.deviation * width;
    bin.top += trans[bin.trans + part_plane()] * rule_.deviation * height;
    return bin;
  }
  int64_t part_plane() const { return rule_.part[0] * rule_.part[1]; }

  // Calls fn(sample) for the samples of a bin that lie in the image or less than half a pixel outside; returns their
  // number.
  template <class Fn> int64_t each(const MovedBin<T>& bin, Fn&& fn) const {
    const T most_x = static_cast<T>(p_.width - 1), most_y = static_cast<T>(p_.height - 1);
    int64_t count = 0;
    for (int64_t k = 0; p_.plane() > 0 && k < rule_.samples * rule_.samples; ++k) {
      const int64_t row = k / rule_.samples, column = k % rule_.samples;
      const T x = bin.left + static_cast<T>(column) * bin.step_x, y = bin.top + static_cast<T>(row) * bin.step_y;
      if (!(x >= T(-0.5) && x <= most_x + T(0.5) && y >= T(-0.5) && y <= most_y + T(0.5))) continue;
      fn(BinSample<T>(std::clamp(x, T(0), most_x), std::clamp(y, T(0), most_y), p_.width));
      ++count;
    }
    return count;
  }

 private:
  MovedRule<T> rule_;
  Pooled p_;
  int64_t made_, classes_;
};

}  // namespace anabranch::detection
