#include "ops/sequence/rows_on_host.h"

#include <algorithm>

namespace anabranch::sequence {
namespace {

int64_t row_grain(int64_t width) { return 16384 / std::max<int64_t>(1, width) + 1; }

// fn(position, place) for each place of a list.
template <class Fn>
void each_place(const KernelContext& c, const std::vector<int64_t>& places, int64_t width, Fn&& fn) {
  c.parallel_each(static_cast<int64_t>(places.size()), row_grain(width),
                  [&](int64_t p) { fn(p * width, places[static_cast<size_t>(p)] * width); });
}

// Calls copy(step) for each step after the first, and starts with `first`, or zeros.
template <class T, class Fn>
void each_previous(const KernelContext& c, const Steps& order, Slab<const T> first, int64_t width, T* to, Fn&& copy) {
  if (order.count() == 0) return;
  const int64_t n = order.widest() * width;
  if (first) {
    std::copy_n(first.at, n, to);
  } else {
    std::fill_n(to, n, T{0});
  }
  c.parallel_for(order.count() - 1, row_grain(n), [&](int64_t b, int64_t e) {
    for (int64_t t = b + 1; t <= e; ++t) copy(t);
  });
}

}  // namespace

template <class T>
void RowsOnHost<T>::gather(const KernelContext& c, Slab<const T> from, int64_t width, Slab<T> to,
                           Slab<const T> bias) const {
  each_place(c, order_.all_rows(), width, [&](int64_t p, int64_t at) {
    const T* row = from.at + at;
    if (!bias) {
      std::copy_n(row, width, to.at + p);
      return;
    }
    for (int64_t j = 0; j < width; ++j) to.at[p + j] = row[j] + bias.at[j];
  });
}

template <class T>
void RowsOnHost<T>::gather_sum(const KernelContext& c, Slab<const T> from, int64_t width, Slab<T> to) const {
  each_place(c, order_.all_rows(), width, [&](int64_t p, int64_t at) { add_to(from.at + at, width, to.at + p); });
}

template <class T>
void RowsOnHost<T>::scatter(const KernelContext& c, Slab<const T> from, int64_t width, Slab<T> to) const {
  each_place(c, order_.all_rows(), width, [&](int64_t p, int64_t at) { std::copy_n(from.at + p, width, to.at + at); });
}

template <class T>
void RowsOnHost<T>::gather_first(const KernelContext& c, Slab<const T> from, int64_t width, Slab<T> to) const {
  each_place(c, order_.sequences(), width, [&](int64_t p, int64_t at) { std::copy_n(from.at + at, width, to.at + p); });
}

template <class T>
void RowsOnHost<T>::scatter_first(const KernelContext& c, Slab<const T> from, int64_t width, Slab<T> to) const {
  if (!to) return;
  std::fill_n(to.at, to.count, T{0});
  each_place(c, order_.sequences(), width, [&](int64_t p, int64_t at) { std::copy_n(from.at + p, width, to.at + at); });
}

template <class T>
void RowsOnHost<T>::previous(const KernelContext& c, Slab<const T> rows, Slab<const T> first, int64_t width,
                             Slab<T> to) const {
  each_previous(c, order_, first, width, to.at, [&](int64_t t) {
    std::copy_n(rows.at + order_.begin(t - 1) * width, order_.rows(t) * width, to.at + order_.begin(t) * width);
  });
}

template <class T>
void RowsOnHost<T>::gather_previous(const KernelContext& c, Slab<const T> rows, Slab<const T> first, int64_t width,
                                    Slab<T> to) const {
  each_previous(c, order_, first, width, to.at, [&](int64_t t) {
    for (int64_t k = 0; k < order_.rows(t); ++k) {
      std::copy_n(rows.at + order_.row(order_.begin(t - 1) + k) * width, width, to.at + (order_.begin(t) + k) * width);
    }
  });
}

template <class T>
void RowsOnHost<T>::column_sums(const KernelContext& c, Slab<const T> x, int64_t row_x, int64_t width, Slab<T> to,
                                Slab<const T> by) const {
  constexpr int64_t kStrip = 64, kWorth = 1 << 16;
  const int64_t rows = this->rows();
  std::fill_n(to.at, width, T{0});
  c.parallel_for((width + kStrip - 1) / kStrip, kWorth / std::max<int64_t>(1, rows * kStrip) + 1,
                 [&](int64_t b, int64_t e) {
                   const int64_t from = b * kStrip, n = std::min(width, e * kStrip) - from;
                   T* sums = to.at + from;
                   for (int64_t r = 0; r < rows; ++r) {
                     const T* row = x.at + r * row_x + from;
                     if (!by) {
                       add_to(row, n, sums);
                       continue;
                     }
                     const T* factor = by.at + r * width + from;
                     for (int64_t j = 0; j < n; ++j) sums[j] += row[j] * factor[j];
                   }
                 });
}

template class RowsOnHost<float>;
template class RowsOnHost<double>;

}  // namespace anabranch::sequence
