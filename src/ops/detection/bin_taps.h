// Bins of a region whose value is separable: the pixels of each bin along one axis, with their weights. The value of a
// bin is the sum of X[row, column] * weight(row) * weight(column).
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "opdef/kernel_context.h"
#include "ops/detection/rois.h"

namespace anabranch::detection {

template <class T> struct Tap {
  int64_t at;
  T weight;
};

// The bins of all regions along one axis. The lists keep their memory from step to step.
template <class T> class BinTaps {
 public:
  void clear() {
    taps_.clear();
    ends_.assign(1, 0);
  }
  // Adds to the open bin. Neighbors arrive in order, so a pixel that exists already is one of the last two.
  void add(int64_t at, T weight) {
    const auto first = static_cast<size_t>(ends_.back());
    for (size_t k = taps_.size(); k > first && k + 2 > taps_.size(); --k) {
      if (taps_[k - 1].at != at) continue;
      taps_[k - 1].weight += weight;
      return;
    }
    taps_.push_back({at, weight});
  }
  void close_bin() { ends_.push_back(static_cast<int64_t>(taps_.size())); }
  const Tap<T>* begin(int64_t bin) const { return taps_.data() + ends_[static_cast<size_t>(bin)]; }
  const Tap<T>* end(int64_t bin) const { return begin(bin + 1); }

 private:
  std::vector<Tap<T>> taps_;
  std::vector<int64_t> ends_{0};
};

// Sum of a plane weighted by row taps and column taps.
template <class T>
T gather(const T* plane, int64_t width, const BinTaps<T>& rows, int64_t i, const BinTaps<T>& columns, int64_t j) {
  T sum = 0;
  for (const Tap<T>* r = rows.begin(i); r != rows.end(i); ++r) {
    T line = 0;
    for (const Tap<T>* k = columns.begin(j); k != columns.end(j); ++k) line += plane[r->at * width + k->at] * k->weight;
    sum += line * r->weight;
  }
  return sum;
}

template <class T>
void scatter(T value, T* plane, int64_t width, const BinTaps<T>& rows, int64_t i, const BinTaps<T>& columns,
             int64_t j) {
  for (const Tap<T>* r = rows.begin(i); r != rows.end(i); ++r) {
    const T line = value * r->weight;
    for (const Tap<T>* k = columns.begin(j); k != columns.end(j); ++k) plane[r->at * width + k->at] += line * k->weight;
  }
}

// Extents of the image and of the bins.
struct Pooled {
  int64_t channels, height, width, rows, columns;
  Pooled(const Shape& x, const Shape& out) : channels(x[1]), height(x[2]), width(x[3]), rows(out[2]), columns(out[3]) {}
  int64_t plane() const { return height * width; }
  int64_t bins() const { return rows * columns; }
};

inline constexpr int64_t kBinGrain = 1024;  // bins of one channel per parallel task

template <class T>
void pool_bins(const KernelContext& c, const Pooled& p, const std::vector<int32_t>& image, const BinTaps<T>& down,
               const BinTaps<T>& across, const T* x, T* out) {
  const auto planes = static_cast<int64_t>(image.size()) * p.channels;
  c.parallel_each(planes, kBinGrain / p.bins() + 1, [&](int64_t k) {
    const int64_t r = k / p.channels, channel = k % p.channels;
    const T* plane = x + (image[static_cast<size_t>(r)] * p.channels + channel) * p.plane();
    for (int64_t b = 0; b < p.bins(); ++b) {
      out[k * p.bins() + b] =
          gather(plane, p.width, down, r * p.rows + b / p.columns, across, r * p.columns + b % p.columns);
    }
  });
}

// One task owns a channel in all images and visits the regions in order, so sums do not race. dx is zero before.
template <class T>
void share_out_bins(const KernelContext& c, const Pooled& p, const std::vector<int32_t>& image, const BinTaps<T>& down,
                    const BinTaps<T>& across, const T* dout, T* dx) {
  const auto rois = static_cast<int64_t>(image.size());
  c.parallel_for(p.channels, kBinGrain / (rois * p.bins() + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = 0; r < rois; ++r) {
      for (int64_t channel = begin; channel < end; ++channel) {
        T* plane = dx + (image[static_cast<size_t>(r)] * p.channels + channel) * p.plane();
        const T* d = dout + (r * p.channels + channel) * p.bins();
        for (int64_t b = 0; b < p.bins(); ++b) {
          scatter(d[b], plane, p.width, down, r * p.rows + b / p.columns, across, r * p.columns + b % p.columns);
        }
      }
    }
  });
}

}  // namespace anabranch::detection
