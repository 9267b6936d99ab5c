// Copies and sums of non-contiguous rows, such as slices of weights, on the host and on devices.
#pragma once
#include "ops/device/args_recurrent.h"
#include "ops/device/slab.h"

namespace anabranch::sequence {

using device::Slab, device::slab;

template <class T> class BlocksOnHost {
 public:
  // to[r][j] = from[r][j], or adds to it.
  void move(const KernelContext& c, int64_t rows, int64_t width, Slab<const T> from, int64_t row_from, Slab<T> to,
            int64_t row_to, bool add) const;
  // to[j] += the single number of a slab (missing: 0) and `more`.
  void add_number(const KernelContext& c, Slab<const T> number, double more, Slab<T> to) const;
  // to[0] = the sum of all of `from`, or adds to it.
  void sum(const KernelContext& c, Slab<const T> from, Slab<T> to, bool add) const;
};

template <class T> class BlocksOnDevice {
 public:
  void move(const DeviceContext& c, int64_t rows, int64_t width, Slab<const T> from, int64_t row_from, Slab<T> to,
            int64_t row_to, bool add) const;
  void add_number(const DeviceContext& c, Slab<const T> number, double more, Slab<T> to) const;
  void sum(const DeviceContext& c, Slab<const T> from, Slab<T> to, bool add) const;

 private:
  ab_kernel move_ = device::kernel_of<T>("move_block"), sum_ = device::kernel_of<T>("sum_block");
};

extern template class BlocksOnHost<float>;
extern template class BlocksOnHost<double>;
extern template class BlocksOnDevice<float>;
extern template class BlocksOnDevice<double>;

}  // namespace anabranch::sequence
