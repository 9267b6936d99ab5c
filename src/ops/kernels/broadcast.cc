#include "ops/kernels/broadcast.h"

#include <algorithm>

namespace anabranch {
namespace {

// Rank without trailing ones, for operands that do not fit otherwise. One axis always stays.
Shape trimmed(const Shape& s, int rank_limit) {
  int rank = s.rank();
  while (rank > 1 && rank > rank_limit && s[rank - 1] == 1) --rank;
  return s.slice(0, rank);
}

int64_t joint_extent(int64_t a, int64_t b) {
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  if (a == kUnknown) return b;
  return b == kUnknown ? a : -2;
}

}  // namespace

int broadcast_axis(const Shape& x, const Shape& y, int axis) {
  if (x == y) return 0;  // equal shapes: axis is irrelevant
  const int rank = std::max(x.rank(), y.rank());
  AB_CHECK(axis >= -1 && axis < std::max(rank, 1), InvalidArgument, "axis must be -1 to {} for {} and {}, got {}",
           rank - 1, x.str(), y.str(), axis);
  return axis == -1 ? std::abs(x.rank() - y.rank()) : axis;
}

Shape laid_at(const Shape& operand, int rank, int axis) {
  const Shape s = operand.rank() < rank ? trimmed(operand, rank - axis) : operand;
  const int begin = operand.rank() < rank ? axis : 0;
  AB_CHECK(begin + s.rank() <= rank, ShapeMismatch, "{} at axis {} must not reach beyond rank {}", operand.str(), begin,
           rank);
  Shape laid;
  for (int i = 0; i < rank; ++i) laid.push_back(i < begin || i >= begin + s.rank() ? 1 : s[i - begin]);
  return laid;
}

Shape broadcast_shape(const Shape& x, const Shape& y, int axis) {
  const int rank = std::max(x.rank(), y.rank()), at = broadcast_axis(x, y, axis);
  const Shape a = laid_at(x, rank, at), b = laid_at(y, rank, at);
  Shape out;
  for (int i = 0; i < rank; ++i) {
    const int64_t extent = joint_extent(a[i], b[i]);
    AB_CHECK(extent >= kUnknown, ShapeMismatch, "X is {}, Y is {}, axis {}: extents must be equal or 1, got {} and {}",
             x.str(), y.str(), axis, a[i], b[i]);
    out.push_back(extent);
  }
  return out;
}

NdLoop<3> broadcast_loop(const Shape& out, const Shape& x, const Shape& y, int axis) {
  const int rank = out.rank(), at = broadcast_axis(x, y, axis);
  const Shape a = laid_at(x, rank, at), b = laid_at(y, rank, at);
  const auto so = dense_strides(out), sa = dense_strides(a), sb = dense_strides(b);
  NdLoop<3> loop;
  for (int i = 0; i < rank; ++i) {
    AB_CHECK((a[i] == out[i] || a[i] == 1) && (b[i] == out[i] || b[i] == 1), ShapeMismatch,
             "X and Y must broadcast to the shape of the result, got {}, {} and {}", x.str(), y.str(), out.str());
    loop.add_axis(out[i], {so[i], a[i] == 1 ? 0 : sa[i], b[i] == 1 ? 0 : sb[i]});
  }
  return loop;
}

}  // namespace anabranch
