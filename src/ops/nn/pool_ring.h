// Averages of windows of images and gradients of pools, row by row of outputs, in float32 and the order of the plain
// loops of pool_planes.h, whose bits they have.
#pragma once
#include <cstring>
#include <limits>
#include <vector>

#include "ops/nn/pool_dims.h"
#include "ops/nn/pool_taps.h"

namespace anabranch::nn {

// The rows of inputs that the windows of one row of outputs need, each split by phases of the stride: row r lies in
// slot r % height. Places beyond the image hold `padding`. One thread's; a plane may follow another of the same
// extents.
class PoolRing {
 public:
  static constexpr int64_t kMostTaps = 64, kMostElems = 32768;

  // `least`: outputs in a row that are worth whole vectors.
  static bool pays(const PoolDims& d, int64_t least) {
    const Window& w = d.window;
    return w.axes == 2 && !d.adaptive && !d.channels_last && w.out[2] >= least &&
           w.kernel[1] * w.kernel[2] <= kMostTaps && w.stride[2] <= 8 && w.before[2] >= 0 &&
           w.kernel[1] * slot_elems(w) <= kMostElems;
  }
  PoolRing(const PoolDims& d, float padding)
      : d_(d), w_(d.window), phase_(phase_elems(w_)), slot_(slot_elems(w_)), lanes_(whole(w_.out[2])) {
    static thread_local std::vector<float> memory;
    memory.assign(static_cast<size_t>(w_.kernel[1] * slot_ + 4 * lanes_), padding);
    ring_ = memory.data();
    line_ = ring_ + w_.kernel[1] * slot_;
    divisors_ = line_ + lanes_;
    share_ = divisors_ + lanes_;
    std::fill(divisors_, divisors_ + lanes_, 1.0f);
  }

  void mean(const float* x, float* out) {
    int64_t loaded = 0;
    for (int64_t y = 0; y < w_.out[1]; ++y, out += w_.out[2]) {
      const auto rows = d_.range(1, y);
      load(x, rows, &loaded);
      const int count = taps(rows, false);
      divide_by(rows);
      mean_of_taps(taps_, count, divisors_, line_, lanes_);
      std::memcpy(out, line_, bytes());
    }
  }
  // dx holds zeros.
  void mean_gradient(const float* dout, float* dx) {
    std::fill(line_, line_ + lanes_, 0.0f);
    int64_t entered = 0, left = 0;
    for (int64_t y = 0; y < w_.out[1]; ++y, dout += w_.out[2]) {
      const auto rows = d_.range(1, y);
      for (; left < std::min(rows.begin, entered); ++left) give(left, dx);
      left = std::max(left, rows.begin);
      for (entered = std::max(entered, rows.begin); entered < rows.end; ++entered)
        std::fill(slot(entered), slot(entered) + slot_, 0.0f);
      std::memcpy(line_, dout, bytes());
      const int count = taps(rows, true);
      divide_by(rows);
      add_to_taps(line_, divisors_, share_, taps_, count, lanes_);
    }
    for (; left < entered; ++left) give(left, dx);
  }
  // The first input that equals the output gets the whole gradient; `padding` must be NaN, which equals nothing.
  void max_gradient(const float* x, const float* out, const float* dout, float* dx) {
    auto* found = reinterpret_cast<int32_t*>(share_);
    int64_t loaded = 0;
    for (int64_t y = 0; y < w_.out[1]; ++y, out += w_.out[2], dout += w_.out[2]) {
      const auto rows = d_.range(1, y);
      load(x, rows, &loaded);
      const int count = taps(rows, false);
      std::memcpy(line_, out, bytes());
      first_equal(taps_, places_, count, line_, found, lanes_);
      for (int64_t i = 0, at = rows.begin * w_.in[2] - w_.before[2]; i < w_.out[2]; ++i, at += w_.stride[2]) {
        if (found[i] >= 0) dx[at + found[i]] += dout[i];
      }
    }
  }

 private:
  static int64_t whole(int64_t n) { return (n + kPoolLanes - 1) / kPoolLanes * kPoolLanes; }
  static int64_t phase_elems(const Window& w) {
    return std::max(whole(w.out[2]) + w.kernel[2] / w.stride[2], (w.in[2] + w.before[2]) / w.stride[2]) + 1;
  }
  static int64_t slot_elems(const Window& w) { return phase_elems(w) * w.stride[2]; }
  size_t bytes() const { return static_cast<size_t>(w_.out[2]) * sizeof(float); }
  float* slot(int64_t row) const { return ring_ + row % w_.kernel[1] * slot_; }

  // Elements in front of the first whole stride, which lies at the result in every phase.
  int64_t lead() const { return std::min(w_.in[2], (w_.stride[2] - w_.before[2] % w_.stride[2]) % w_.stride[2]); }
  float* place(int64_t row, int64_t column) const {
    const int64_t padded = column + w_.before[2];
    return slot(row) + padded % w_.stride[2] * phase_ + padded / w_.stride[2];
  }
  void load(const float* x, const PoolDims::Range& rows, int64_t* loaded) const {
    for (int64_t r = std::max(*loaded, rows.begin); r < rows.end; ++r) {
      const float* row = x + r * w_.in[2];
      const int64_t n = lead();
      for (int64_t i = 0; i < n; ++i) *place(r, i) = row[i];
      if (n < w_.in[2]) split_phases(row + n, w_.in[2] - n, w_.stride[2], phase_, place(r, n));
    }
    *loaded = std::max(*loaded, rows.end);
  }
  void give(int64_t r, float* dx) const {
    float* row = dx + r * w_.in[2];
    const int64_t n = lead();
    for (int64_t i = 0; i < n; ++i) row[i] = *place(r, i);
    if (n < w_.in[2]) join_phases(place(r, n), w_.in[2] - n, w_.stride[2], phase_, row + n);
  }
  // The taps of these rows in the order in which the plain loops reach one output, or, backwards, one input.
  int taps(const PoolDims::Range& rows, bool backwards) {
    const int64_t width = w_.kernel[2];
    int count = 0;
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      for (int64_t i = 0; i < width; ++i, ++count) {
        const int64_t k = backwards ? width - 1 - i : i;
        taps_[count] = slot(r) + k % w_.stride[2] * phase_ + k / w_.stride[2];
        places_[count] = static_cast<int32_t>((r - rows.begin) * w_.in[2] + k);
      }
    }
    return count;
  }
  void divide_by(const PoolDims::Range& rows) {
    const int64_t height = rows.end - rows.begin;
    if (height == height_) return;
    height_ = height;
    for (int64_t x = 0; x < w_.out[2]; ++x) divisors_[x] = static_cast<float>(d_.divisor({0, 1}, rows, d_.range(2, x)));
  }

  const PoolDims& d_;
  const Window& w_;
  int64_t phase_, slot_, lanes_, height_ = std::numeric_limits<int64_t>::min();
  float *ring_, *line_, *divisors_, *share_;
  float* taps_[kMostTaps];
  int32_t places_[kMostTaps];
};

}  // namespace anabranch::nn
