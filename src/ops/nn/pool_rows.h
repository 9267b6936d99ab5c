// Maxima of windows of images and volumes, row by row.
#pragma once
#include <limits>

#include "ops/nn/max_rows.h"
#include "ops/nn/pool_dims.h"

namespace anabranch::nn {

// Outputs of a plane row by row: first the maximum of each column of inputs, through all planes of a volume, then of
// neighbouring columns. Windows that reach beyond the image, or are wider than the buffer of column maxima, are left to
// the caller.
class MaxRows {
 public:
  static constexpr int kMostRows = 16, kMostColumns = 1024;

  explicit MaxRows(const PoolDims& d)
      : d_(d), width_(d.window.kernel[2]), stride_(d.window.stride[2]), before_(d.window.before[2]) {
    first_ = before_ > 0 ? (before_ + stride_ - 1) / stride_ : 0;
    const int64_t room = d.window.in[2] - width_ + before_;
    last_ = room < 0 ? 0 : std::min(d.window.out[2], room / stride_ + 1);
  }
  // Whether enough windows are inside the image to be worthwhile.
  bool pays() const {
    const bool small = d_.window.kernel[0] <= kMostRows && d_.window.kernel[1] <= kMostRows &&
                       d_.window.kernel[0] * d_.window.kernel[1] <= kMostRows && width_ <= kMostColumns / 2 &&
                       stride_ <= kMostColumns / 4;
    return !d_.adaptive && !d_.channels_last && small && last_ - first_ >= 4;
  }
  // The outputs [first, last) of row (z, y); the others are not touched.
  void run(const float* plane, int64_t z, int64_t y, float* out) const {
    const auto depth = d_.range(0, z), rows = d_.range(1, y);
    if (depth.begin >= depth.end || rows.begin >= rows.end)
      return std::fill(out + first_, out + last_, std::numeric_limits<float>::lowest());
    const int64_t most = (kMostColumns - width_) / stride_ + 1;
    for (int64_t begin = first_; begin < last_; begin += most)
      chunk(plane, depth, rows, begin, std::min(last_, begin + most), out);
  }
  int64_t first() const { return first_; }
  int64_t last() const { return last_; }

 private:
  void chunk(const float* plane, PoolDims::Range depth, PoolDims::Range rows, int64_t begin, int64_t end,
             float* out) const {
    const float* sources[kMostRows];
    float tops[kMostColumns];
    const int64_t column = begin * stride_ - before_, columns = (end - begin - 1) * stride_ + width_;
    int count = 0;
    for (int64_t z = depth.begin; z < depth.end; ++z) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        sources[count++] = plane + (z * d_.window.in[1] + r) * d_.window.in[2] + column;
      }
    }
    max_of_rows(sources, count, tops, columns);
    max_of_columns(tops, width_, stride_, out + begin, end - begin);
  }

  const PoolDims& d_;
  int64_t width_, stride_, before_, first_ = 0, last_ = 0;
};

}  // namespace anabranch::nn
