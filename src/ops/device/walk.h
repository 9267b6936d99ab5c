// Iterates over axes in kernels: the offsets of one element in all operands at once.
#pragma once
#include "ops/device/args.h"

namespace anabranch::device {

template <int kOperands> class Walk {
 public:
  explicit Walk(const Axes<kOperands>& axes) : axes_(axes), count_(axes.count()) {}

  AB_HD int64_t count() const { return count_; }
  // Of element i, with the last axis fastest.
  AB_HD void at(int64_t i, int64_t (&place)[kOperands]) const {
    for (int64_t& p : place) p = 0;
    if (count_ <= kMostNarrow) return take(static_cast<uint32_t>(i), place);  // a GPU divides 32-bit integers faster
    take(static_cast<uint64_t>(i), place);
  }

 private:
  static constexpr int64_t kMostNarrow = 0x7fffffff;

  template <class Index> AB_HD void take(Index i, int64_t (&place)[kOperands]) const {
    for (int axis = axes_.rank - 1; axis > 0; --axis) {
      const Index extent = static_cast<Index>(axes_.extent[axis]), rest = i / extent;
      const auto index = static_cast<int64_t>(i - rest * extent);
      for (int k = 0; k < kOperands; ++k) place[k] += index * axes_.stride[k][axis];
      i = rest;
    }
    if (axes_.rank == 0) return;
    for (int k = 0; k < kOperands; ++k) place[k] += static_cast<int64_t>(i) * axes_.stride[k][0];
  }

  Axes<kOperands> axes_;
  int64_t count_;
};

// The axes on which operand `operand` has stride 0, or those on which it does not.
template <int kOperands> Axes<kOperands> axes_where(const Axes<kOperands>& axes, int operand, bool stands) {
  Axes<kOperands> chosen = {};
  for (int axis = 0; axis < axes.rank; ++axis) {
    if ((axes.stride[operand][axis] == 0) != stands) continue;
    chosen.extent[chosen.rank] = axes.extent[axis];
    for (int k = 0; k < kOperands; ++k) chosen.stride[k][chosen.rank] = axes.stride[k][axis];
    ++chosen.rank;
  }
  return chosen;
}

}  // namespace anabranch::device
