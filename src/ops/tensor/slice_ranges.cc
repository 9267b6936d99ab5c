#include "ops/tensor/slice_ranges.h"

#include "ops/declare/declare.h"

namespace anabranch::tensor {
namespace {

// Python's rule: negative positions count from the end, positions out of range are clamped. With a negative step an end
// before the first element is written as less than -extent.
SliceRange range_of(int64_t begin, int64_t end, int64_t step, int64_t extent) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
  const auto placed = [&](int64_t p) { return std::clamp(p < 0 ? p + extent : p, low, high); };
  const int64_t from = placed(begin), to = placed(end);
  const int64_t reach = step > 0 ? to - from : from - to;
  const int64_t stride = step > 0 ? step : -step;
  return {from, step, reach <= 0 ? 0 : (reach + stride - 1) / stride};
}

}  // namespace

SliceRanges ranges_of(const SliceLists& l, const Shape& x) {
  AB_CHECK(l.axes.size() == l.starts.size() && l.axes.size() == l.ends.size() && l.axes.size() == l.strides.size(),
           InvalidArgument,
           "axes, starts, ends and strides must have the same number of entries, got {}, {}, {} and {}", l.axes.size(),
           l.starts.size(), l.ends.size(), l.strides.size());
  SliceRanges r;
  for (int i = 0; i < x.rank(); ++i) {
    r.of[i] = {0, 1, x[i]};
    r.open[i] = x[i] == kUnknown;
  }
  for (size_t k = 0; k < l.axes.size(); ++k) {
    const int axis = normal_axis(l.axes[k], x.rank(), "axes");
    for (size_t before = 0; before < k; ++before) {
      AB_CHECK(normal_axis(l.axes[before], x.rank(), "axes") != axis, InvalidArgument,
               "axes must name each axis once, got axis {} twice", axis);
    }
    if (!l.known && (l.flags.size() != l.axes.size() || l.flags[k] != 1)) r.open[axis] = true;
    const bool steps = l.strides[k] != 0 && l.strides[k] > -(int64_t{1} << 32);
    AB_CHECK(steps || (r.open[axis] && !l.known), InvalidArgument, "the stride of axis {} must not be 0, got {}", axis,
             l.strides[k]);
    if (r.open[axis]) {
      r.of[axis].count = kUnknown;
      continue;
    }
    r.of[axis] = range_of(l.starts[k], l.ends[k], l.strides[k], x[axis]);
  }
  return r;
}

}  // namespace anabranch::tensor
