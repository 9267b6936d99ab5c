// A loop over the index space of several strided operands: shared by broadcasting, reducing, transposing, slicing and
// tiling. Axes are added outermost first; axes of extent 1 vanish, and adjacent axes that every operand traverses
// without a gap are merged, so most loops end with one or two axes. Allocates nothing on the heap.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "core/shape.h"
#include "opdef/kernel_context.h"

namespace anabranch {

template <int kOperands> class NdLoop {
 public:
  using Offsets = std::array<int64_t, kOperands>;  // in elements, one for each operand

  void add_axis(int64_t extent, const Offsets& strides) {
    total_ *= extent;
    if (extent == 1) return;
    if (rank_ > 0 && continues(extent, strides)) {
      extents_[rank_ - 1] *= extent;
      strides_[rank_ - 1] = strides;
      return;
    }
    extents_[rank_] = extent;
    strides_[rank_++] = strides;
  }

  int64_t total() const { return total_; }  // points of the index space
  int rank() const { return rank_; }
  int64_t extent(int axis) const { return extents_[axis]; }
  const Offsets& strides(int axis) const { return strides_[axis]; }
  // The innermost axis, along which a kernel runs.
  int64_t inner() const { return rank_ ? extents_[rank_ - 1] : 1; }
  Offsets inner_strides() const { return rank_ ? strides_[rank_ - 1] : Offsets{}; }
  int64_t outer() const { return inner() ? total_ / inner() : 0; }

  // Calls fn(offsets) for runs [begin, end) of [0, outer()), with the offset of each operand's run of inner() points.
  template <class Fn> void each_run(int64_t begin, int64_t end, Fn&& fn) const {
    std::array<int64_t, kMaxRank> index{};
    Offsets at = offsets_of(begin, &index);
    for (int64_t run = begin; run < end; ++run) {
      fn(static_cast<const Offsets&>(at));
      for (int axis = rank_ - 2; axis >= 0; --axis) {
        for (int k = 0; k < kOperands; ++k) at[k] += strides_[axis][k];
        if (++index[axis] < extents_[axis]) break;
        for (int k = 0; k < kOperands; ++k) at[k] -= strides_[axis][k] * extents_[axis];
        index[axis] = 0;
      }
    }
  }

  // fn(offsets, n) covers the whole space with runs of n points, on idle workers.
  template <class Fn> void run(const KernelContext& c, int64_t grain, Fn&& fn) const {
    if (total_ == 0) return;
    if (outer() == 1) {
      const Offsets step = inner_strides();
      c.parallel_for(inner(), grain, [&](int64_t begin, int64_t end) {
        Offsets at;
        for (int k = 0; k < kOperands; ++k) at[k] = begin * step[k];
        fn(static_cast<const Offsets&>(at), end - begin);
      });
      return;
    }
    c.parallel_for(outer(), std::max<int64_t>(1, grain / inner()), [&](int64_t begin, int64_t end) {
      each_run(begin, end, [&](const Offsets& at) { fn(at, inner()); });
    });
  }

 private:
  bool continues(int64_t extent, const Offsets& strides) const {
    for (int k = 0; k < kOperands; ++k) {
      if (strides_[rank_ - 1][k] != strides[k] * extent) return false;
    }
    return true;
  }

  Offsets offsets_of(int64_t run, std::array<int64_t, kMaxRank>* index) const {
    Offsets at{};
    for (int axis = rank_ - 2; axis >= 0; --axis) {
      (*index)[axis] = run % extents_[axis];
      run /= extents_[axis];
      for (int k = 0; k < kOperands; ++k) at[k] += (*index)[axis] * strides_[axis][k];
    }
    return at;
  }

  int rank_ = 0;
  int64_t total_ = 1;
  std::array<int64_t, kMaxRank> extents_{};
  std::array<Offsets, kMaxRank> strides_{};
};

// Stride of an axis in a dense tensor.
inline std::array<int64_t, kMaxRank> dense_strides(const Shape& shape) {
  std::array<int64_t, kMaxRank> strides{};
  int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

}  // namespace anabranch
