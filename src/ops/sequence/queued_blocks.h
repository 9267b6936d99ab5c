// Copies and sums of non-contiguous rows on devices, such as slices of weights.
#pragma once
#include "ops/device/args_recurrent.h"
#include "ops/device/slab.h"

namespace anabranch::sequence {

template <class T> class QueuedBlocks {
  template <class N> using Slab = device::Slab<N>;

 public:
  // to[r][j] = from[r][j], or adds to it.
  void move(const DeviceContext& c, int64_t rows, int64_t width, Slab<const T> from, int64_t row_from, Slab<T> to,
            int64_t row_to, bool add) const;
  // to[j] += the single number of a slab (missing: 0) and `more`.
  void add_number(const DeviceContext& c, Slab<const T> number, double more, Slab<T> to) const;
  // to[0] = the sum of all of `from`, or adds to it.
  void sum(const DeviceContext& c, Slab<const T> from, Slab<T> to, bool add) const;

 private:
  ab_kernel move_ = device::kernel_of<T>("move_block"), sum_ = device::kernel_of<T>("sum_block");
};

extern template class QueuedBlocks<float>;
extern template class QueuedBlocks<double>;

}  // namespace anabranch::sequence
