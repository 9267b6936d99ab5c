// Tensors as lines along an axis.
#pragma once
#include <algorithm>

#include "opdef/kernel_context.h"
#include "ops/kernels/flat_loop.h"

namespace anabranch::tensor {

// A tensor as lines along an axis: element k of line (o, i) is x[(o * extent + k) * inner + i].
struct Lines {
  int64_t outer, extent, inner;
  Lines(const Shape& s, int axis) : outer(s.numel(0, axis)), extent(s[axis]), inner(s.numel(axis + 1, s.rank())) {}
  int64_t count() const { return outer * inner; }
  int64_t begin(int64_t line) const { return line / inner * extent * inner + line % inner; }
};

// Calls fn(line) for all lines, on idle workers; each task has a separate index buffer.
template <class Fn> void each_line(const KernelContext& c, const Lines& l, Fn fn) {
  const int64_t grain = std::max<int64_t>(1, kMathGrain / std::max<int64_t>(1, l.extent));
  c.parallel_each(l.count(), grain, [&](int64_t line) { fn(line); });
}

}  // namespace anabranch::tensor
