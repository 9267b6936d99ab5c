#include "ops/sequence/rows_on_device.h"

namespace anabranch::sequence {

template <class T> void RowsOnDevice<T>::cut(const Offsets& o, bool reverse) {
  order_.cut(o, reverse);
  dense_ = false;
}

template <class T> void RowsOnDevice<T>::cut_dense(int64_t steps, int64_t batch) {
  order_.cut_dense(steps, batch);
  dense_ = true;
}

template <class T> device::DeviceIn RowsOnDevice<T>::places(const DeviceContext& c) {
  return dense_ ? device::DeviceIn{} : rows_.of(c, order_.all_rows());
}

template <class T>
void RowsOnDevice<T>::launch_gather(const DeviceContext& c, Slab<const T> from, device::DeviceIn places, int64_t n,
                                    int64_t width, Slab<T> to, Slab<const T> first, Slab<const T> bias,
                                    bool add) const {
  device::GatherRowsArgs a{};
  a.x = from.in();
  a.places = places;
  a.first = first.in();
  a.bias = bias.in();
  a.y = to.out();
  a.rows = n;
  a.width = a.row_x = a.row_y = width;
  a.add = add;
  c.launch(gather_, a);
}

template <class T>
void RowsOnDevice<T>::gather(const DeviceContext& c, Slab<const T> from, int64_t width, Slab<T> to,
                             Slab<const T> bias) {
  launch_gather(c, from, places(c), rows(), width, to, {}, bias, false);
}

template <class T>
void RowsOnDevice<T>::gather_sum(const DeviceContext& c, Slab<const T> from, int64_t width, Slab<T> to) {
  launch_gather(c, from, places(c), rows(), width, to, {}, {}, true);
}

template <class T>
void RowsOnDevice<T>::scatter(const DeviceContext& c, Slab<const T> from, int64_t width, Slab<T> to) {
  if (dense_) return launch_gather(c, from, {}, rows(), width, to, {}, {}, false);
  c.launch(scatter_, device::ScatterRowsArgs{from.in(), places(c), to.out(), rows(), width});
}

template <class T>
void RowsOnDevice<T>::gather_first(const DeviceContext& c, Slab<const T> from, int64_t width, Slab<T> to) {
  launch_gather(c, from, sequences_.of(c, order_.sequences()), order_.widest(), width, to, {}, {}, false);
}

template <class T>
void RowsOnDevice<T>::scatter_first(const DeviceContext& c, Slab<const T> from, int64_t width, Slab<T> to) {
  if (!to) return;
  fill_zero(c, to);
  c.launch(scatter_,
           device::ScatterRowsArgs{from.in(), sequences_.of(c, order_.sequences()), to.out(), order_.widest(), width});
}

// The row before each row, by row(its position in the order of steps); -1 - its sequence at step 0.
template <class T> template <class Fn> const std::vector<int64_t>& RowsOnDevice<T>::places_before(Fn&& row) {
  before_.resize(static_cast<size_t>(rows()));
  for (int64_t t = 0; t < order_.count(); ++t) {
    for (int64_t k = 0; k < order_.rows(t); ++k) {
      before_[static_cast<size_t>(order_.begin(t) + k)] = t == 0 ? -1 - k : row(order_.begin(t - 1) + k);
    }
  }
  return before_;
}

template <class T>
void RowsOnDevice<T>::previous(const DeviceContext& c, Slab<const T> rows, Slab<const T> first, int64_t width,
                               Slab<T> to) {
  const auto& places = places_before([](int64_t place) { return place; });
  launch_gather(c, rows, previous_.of(c, places), this->rows(), width, to, first, {}, false);
}

template <class T>
void RowsOnDevice<T>::gather_previous(const DeviceContext& c, Slab<const T> rows, Slab<const T> first, int64_t width,
                                      Slab<T> to) {
  const auto& places = places_before([this](int64_t place) { return order_.row(place); });
  launch_gather(c, rows, gathered_previous_.of(c, places), this->rows(), width, to, first, {}, false);
}

template <class T>
void RowsOnDevice<T>::column_sums(const DeviceContext& c, Slab<const T> x, int64_t row_x, int64_t width, Slab<T> to,
                                  Slab<const T> by) const {
  device::ColumnSumsArgs a{};
  a.x = x.in();
  a.by = by.in();
  a.y = to.out();
  a.rows = rows();
  a.width = a.row_by = width;
  a.row_x = row_x;
  c.launch(sums_, a);
}

template class RowsOnDevice<float>;
template class RowsOnDevice<double>;

}  // namespace anabranch::sequence
