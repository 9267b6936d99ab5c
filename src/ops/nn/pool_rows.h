// Maxima of windows of images and volumes, row by row.
#pragma once
#include <limits>

#include "ops/nn/max_rows.h"
#include "ops/nn/pool_dims.h"

namespace anabranch::nn {

// Outputs of a plane row by row: first the maximum of each column of inputs, through all planes of a volume, then of
// neighboring columns. Columns beyond the image hold the least number. Windows with many rows, or wider than the
// buffer of column maxima, are left to the caller.
class MaxRows {
 public:
  static constexpr int kMostRows = 64, kMostColumns = 1024;

  explicit MaxRows(const PoolDims& d) : d_(d), width_(d.window.kernel[2]), stride_(d.window.stride[2]) {}
  bool pays() const {
    if (d_.channels_last) return false;
    if (whole()) return true;
    if (d_.adaptive) return d_.window.axes == 2 && d_.window.in[1] <= kMostRows && d_.window.in[2] <= kMostColumns;
    return d_.window.kernel[0] <= kMostRows && d_.window.kernel[1] <= kMostRows &&
           d_.window.kernel[0] * d_.window.kernel[1] <= kMostRows && width_ <= kMostColumns / 2 &&
           stride_ <= kMostColumns / 4;
  }
  // The outputs of row (z, y).
  void run(const float* plane, int64_t z, int64_t y, float* out) const {
    if (whole()) return max_of_columns(plane, volume(d_.window.in), 1, out, 1);
    const auto depth = d_.range(0, z), rows = d_.range(1, y);
    if (d_.adaptive) return uneven(plane, rows, out);
    const int64_t most = (kMostColumns - width_) / stride_ + 1;
    for (int64_t begin = 0; begin < d_.window.out[2]; begin += most)
      chunk(plane, depth, rows, begin, std::min(d_.window.out[2], begin + most), out);
  }

 private:
  static constexpr float kLeast = std::numeric_limits<float>::lowest();

  // Whether the only window has the whole image.
  bool whole() const {
    for (size_t d = 0; d < 3; ++d) {
      const auto seen = d_.range(d, 0);
      if (d_.window.out[d] != 1 || seen.begin != 0 || seen.end != d_.window.in[d]) return false;
    }
    return true;
  }
  void chunk(const float* plane, PoolDims::Range depth, PoolDims::Range rows, int64_t begin, int64_t end,
             float* out) const {
    float tops[kMostColumns + 1];  // max_of_columns reads one more
    const int64_t column = begin * stride_ - d_.window.before[2], columns = (end - begin - 1) * stride_ + width_;
    const int64_t first = std::clamp<int64_t>(-column, 0, columns),
                  last = std::clamp<int64_t>(d_.window.in[2] - column, first, columns);
    std::fill(tops, tops + first, kLeast);
    column_tops(plane + column + first, depth, rows, tops + first, last - first);
    std::fill(tops + last, tops + columns + 1, kLeast);
    max_of_columns(tops, width_, stride_, out + begin, end - begin);
  }
  void uneven(const float* plane, PoolDims::Range rows, float* out) const {
    float tops[kMostColumns];
    column_tops(plane, {0, 1}, rows, tops, d_.window.in[2]);
    for (int64_t x = 0; x < d_.window.out[2]; ++x) {
      const auto columns = d_.range(2, x);
      max_of_columns(tops + columns.begin, columns.end - columns.begin, 1, out + x, 1);
    }
  }
  void column_tops(const float* from, PoolDims::Range depth, PoolDims::Range rows, float* tops, int64_t n) const {
    const float* sources[kMostRows];
    int count = 0;
    for (int64_t z = depth.begin; z < depth.end; ++z) {
      for (int64_t r = rows.begin; r < rows.end; ++r)
        sources[count++] = from + (z * d_.window.in[1] + r) * d_.window.in[2];
    }
    max_of_rows(sources, count, tops, n);
  }

  const PoolDims& d_;
  int64_t width_, stride_;
};

}  // namespace anabranch::nn
