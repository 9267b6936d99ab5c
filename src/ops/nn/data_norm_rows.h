// Rows of data_norm: which of their slots are shown, and sums over them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace anabranch::nn {

// With slots, the first column of each slot counts its shows: if it is 0, the slot is ignored.
inline constexpr double kShown = 1e-7;

struct ColumnSlots {
  int64_t columns, dim;  // dim 0: no slots
  ColumnSlots(int64_t columns_in, int32_t slot_dim) : columns(columns_in), dim(slot_dim > 0 ? slot_dim : 0) {}
  int64_t width() const { return dim ? dim : columns; }
  template <class T> bool shown(const T* row, int64_t column) const {
    return dim == 0 || std::abs(static_cast<double>(row[column / dim * dim])) > kShown;
  }
};

// y = (x - mean) scale, 0 where the slot is not shown.
template <class T> void normalize_row(const ColumnSlots& slots, const T* x, const T* mean, const T* scale, T* y) {
  for (int64_t first = 0; first < slots.columns; first += slots.width()) {
    const int64_t end = first + slots.width();
    if (!slots.shown(x, first)) {
      std::fill(y + first, y + end, T{0});
      continue;
    }
    for (int64_t k = first; k < end; ++k) y[k] = (x[k] - mean[k]) * scale[k];
  }
}

// Inputs of the gradient. w may be null.
template <class T> struct Given {
  const T *x, *mean, *scale, *w, *dy;
  T epsilon;
  int64_t rows;
};

// Sums over the rows of a strip of columns, row by row: adjacent columns are read together.
template <class T> struct Strip {
  static constexpr int64_t kColumns = 64;
  int64_t first, n;
  T size[kColumns] = {}, sum[kColumns] = {}, square[kColumns] = {}, slope_w[kColumns] = {}, slope_b[kColumns] = {};

  Strip(int64_t number, int64_t columns) : first(number * kColumns), n(std::min(kColumns, columns - first)) {}

  void add_rows(const Given<T>& a, const ColumnSlots& slots) {
    bool shown[kColumns];
    std::fill(shown, shown + kColumns, true);
    for (int64_t r = 0; r < a.rows; ++r) {
      const T* row = a.x + r * slots.columns;
      for (int64_t k = 0; slots.dim && k < n; ++k) shown[k] = slots.shown(row, first + k);
      add_row(row + first, a.dy + r * slots.columns + first, a.mean + first, a.scale + first, shown);
    }
    // With slots these are means over the rows that show it.
    for (int64_t k = 0; k < n; ++k) {
      if (slots.dim && size[k] >= 1) {
        sum[k] /= size[k];
        square[k] = square[k] / size[k] + size[k] * a.epsilon;
        size[k] = 1;
      } else {
        square[k] += size[k] * a.epsilon;
      }
    }
  }

  void add_row(const T* x, const T* g, const T* mean, const T* scale, const bool* shown) {
    for (int64_t k = 0; k < n; ++k) {
      const T far = x[k] - mean[k], far_squared = far * far, scaled = far * scale[k], value = x[k];
      size[k] += shown[k] ? T{1} : T{0};
      sum[k] += shown[k] ? value : T{0};
      square[k] += shown[k] ? far_squared : T{0};
      slope_w[k] += g[k] * (shown[k] ? scaled : T{0});
      slope_b[k] += g[k];
    }
  }

  void leave(const T* sums, T* to) const {
    if (to) std::copy_n(sums, n, to + first);
  }
};

}  // namespace anabranch::nn
