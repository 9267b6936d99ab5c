// Masked states for the next step (state_mask.h), on devices. Rows are those of all steps.
#pragma once
#include "ops/device/args_recurrent.h"
#include "ops/device/slab.h"

namespace anabranch::sequence {

template <class T> struct Kept {
  device::Slab<const T> shares;  // [rows]; missing: keeps the whole new state
  device::Slab<T> states;        // states for the next step
  explicit operator bool() const { return static_cast<bool>(shares); }
};

template <class T> struct KeptGradient {
  device::Slab<const T> shares;
  device::Slab<T> dstates;  // gradients of the kept states; they are changed
  explicit operator bool() const { return static_cast<bool>(shares); }
};

template <class T> class QueuedKeep {
 public:
  // For n rows from `at` on.
  void forward(const DeviceContext& c, int64_t at, int64_t n, int64_t width, device::Slab<const T> fresh,
               device::Slab<const T> before, const Kept<T>& kept) const {
    c.launch(
        keep_,
        device::KeepRowsArgs{
            kept.shares.part(at, n).in(), fresh.in(), before.in(), kept.states.rows(at, n, width).out(), {}, n, width});
  }
  // Adds to dfresh and dbefore.
  void backward(const DeviceContext& c, int64_t at, int64_t n, int64_t width, const KeptGradient<T>& kept,
                device::Slab<T> dfresh, device::Slab<T> dbefore) const {
    c.launch(back_, device::KeepRowsArgs{kept.shares.part(at, n).in(),
                                         kept.dstates.rows(at, n, width).in(),
                                         {},
                                         dfresh.out(),
                                         dbefore.out(),
                                         n,
                                         width});
  }

 private:
  ab_kernel keep_ = device::kernel_of<T>("keep_rows"), back_ = device::kernel_of<T>("keep_rows_grad");
};

}  // namespace anabranch::sequence
