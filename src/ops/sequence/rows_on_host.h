// Rows of a recurrence on the host, brought to the order of steps and back; see steps.h and rows_on_device.h.
#pragma once
#include "ops/device/slab.h"
#include "ops/sequence/steps.h"

namespace anabranch::sequence {

using device::Slab, device::slab;

template <class T> class RowsOnHost {
 public:
  // From sequences, or [steps, batch] in place.
  void cut(const Offsets& o, bool reverse) { order_.cut(o, reverse); }
  void cut_dense(int64_t steps, int64_t batch) { order_.cut_dense(steps, batch); }
  const Steps& order() const { return order_; }
  int64_t rows() const { return static_cast<int64_t>(order_.all_rows().size()); }

  // Rows laid out like the tensor, brought to the order of steps, with `bias` (missing: none); or adds to the
  // destination.
  void gather(const KernelContext& c, Slab<const T> from, int64_t width, Slab<T> to, Slab<const T> bias = {}) const;
  void gather_sum(const KernelContext& c, Slab<const T> from, int64_t width, Slab<T> to) const;
  void scatter(const KernelContext& c, Slab<const T> from, int64_t width, Slab<T> to) const;
  // One row per sequence, in the order of step 0.
  void gather_first(const KernelContext& c, Slab<const T> from, int64_t width, Slab<T> to) const;
  // The inverse. Empty sequences get zeros. `to` may be missing.
  void scatter_first(const KernelContext& c, Slab<const T> from, int64_t width, Slab<T> to) const;
  // The row before each row, in the order of steps; `first` (missing: zeros) before step 0. rows: in the order of
  // steps; for gather_previous laid out like the tensor.
  void previous(const KernelContext& c, Slab<const T> rows, Slab<const T> first, int64_t width, Slab<T> to) const;
  void gather_previous(const KernelContext& c, Slab<const T> rows, Slab<const T> first, int64_t width,
                       Slab<T> to) const;
  // to[j] = the sum of column j of x; of x by `by` if given. Workers divide the columns.
  void column_sums(const KernelContext& c, Slab<const T> x, int64_t row_x, int64_t width, Slab<T> to,
                   Slab<const T> by = {}) const;

 private:
  Steps order_;
};

extern template class RowsOnHost<float>;
extern template class RowsOnHost<double>;

}  // namespace anabranch::sequence
