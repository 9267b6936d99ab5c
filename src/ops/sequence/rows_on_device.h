// Steps of recurrences on devices: kernels bring rows to the order of steps and back, using index arrays. Launches
// depend only on shapes and LoD. Owned by one kernel.
#pragma once
#include "ops/device/args_recurrent.h"
#include "ops/device/slab.h"
#include "ops/device/upload.h"
#include "ops/device/zeros.h"
#include "ops/sequence/steps.h"

namespace anabranch::sequence {

using device::Slab, device::slab;

template <class T> void fill_zero(const DeviceContext& c, Slab<T> to) {
  if (to.count == 0) return;
  c.devices().check(c.devices().api().fill(c.queue(), to.at, 0, to.bytes()), "filling with zeros");
}

template <class T> class RowsOnDevice {
 public:
  // From sequences, or [steps, batch] in place.
  void cut(const Offsets& o, bool reverse);
  void cut_dense(int64_t steps, int64_t batch);
  const Steps& order() const { return order_; }
  int64_t rows() const { return static_cast<int64_t>(order_.all_rows().size()); }

  // Rows laid out like the tensor, brought to the order of steps, with `bias` (missing: none); or adds to the
  // destination.
  void gather(const DeviceContext& c, Slab<const T> from, int64_t width, Slab<T> to, Slab<const T> bias = {});
  void gather_sum(const DeviceContext& c, Slab<const T> from, int64_t width, Slab<T> to);
  void scatter(const DeviceContext& c, Slab<const T> from, int64_t width, Slab<T> to);
  // One row per sequence, in the order of step 0.
  void gather_first(const DeviceContext& c, Slab<const T> from, int64_t width, Slab<T> to);
  // The inverse. Empty sequences get zeros. `to` may be missing.
  void scatter_first(const DeviceContext& c, Slab<const T> from, int64_t width, Slab<T> to);
  // The row before each row, in the order of steps; `first` (missing: zeros) before step 0. rows: in the order of
  // steps; for gather_previous laid out like the tensor.
  void previous(const DeviceContext& c, Slab<const T> rows, Slab<const T> first, int64_t width, Slab<T> to);
  void gather_previous(const DeviceContext& c, Slab<const T> rows, Slab<const T> first, int64_t width, Slab<T> to);
  // to[j] = the sum of column j of x; of x by `by` if given.
  void column_sums(const DeviceContext& c, Slab<const T> x, int64_t row_x, int64_t width, Slab<T> to,
                   Slab<const T> by = {}) const;

 private:
  // places: missing for rows in the order of steps.
  void launch_gather(const DeviceContext& c, Slab<const T> from, device::DeviceIn places, int64_t n, int64_t width,
                     Slab<T> to, Slab<const T> first, Slab<const T> bias, bool add) const;
  device::DeviceIn places(const DeviceContext& c);
  template <class Fn> const std::vector<int64_t>& places_before(Fn&& row);

  Steps order_;
  bool dense_ = false;
  std::vector<int64_t> before_;
  device::Upload rows_, sequences_, previous_, gathered_previous_;
  ab_kernel gather_ = device::kernel_of<T>("gather_rows"), scatter_ = device::kernel_of<T>("scatter_rows"),
            sums_ = device::kernel_of<T>("column_sums");
};

extern template class RowsOnDevice<float>;
extern template class RowsOnDevice<double>;

}  // namespace anabranch::sequence
