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

bool are_compatible(const Shape& x, const Shape& y) {
  for (int i = 0; i < x.rank(); ++i) {
    if (joint_extent(x[i], y[i]) < kUnknown) return false;
  }
  return true;
}

// The operand's extents from `axis` on.
Shape placed(const Shape& s, int rank, int axis) {
  Shape laid;
  for (int i = 0; i < rank; ++i) laid.push_back(i < axis || i >= axis + s.rank() ? 1 : s[i - axis]);
  return laid;
}

Shape laid_at(const Shape& operand, int rank, int axis) {
  if (operand.rank() == rank) return operand;
  const Shape s = trimmed(operand, rank - axis);
  AB_CHECK(axis + s.rank() <= rank, ShapeMismatch, "{} at axis {} must not reach beyond rank {}", operand.str(), axis,
           rank);
  return placed(s, rank, axis);
}

// Operands of equal rank: like an operand of lower rank, Y starts at `axis` without its trailing ones if it fits there,
// or else X, or else none.
Laid laid_equal(const Shape& x, const Shape& y, int axis) {
  const int rank = x.rank(), most = rank - axis;
  const Shape a = trimmed(x, most), b = trimmed(y, most);
  if (b.rank() <= most && are_compatible(x, placed(b, rank, axis))) return {x, placed(b, rank, axis)};
  if (a.rank() <= most && are_compatible(placed(a, rank, axis), y)) return {placed(a, rank, axis), y};
  return {x, y};
}

}  // namespace

Laid laid(const Shape& x, const Shape& y, int axis) {
  if (x == y) return {x, y};  // axis is irrelevant
  const int rank = std::max(x.rank(), y.rank());
  AB_CHECK(axis >= -1 && axis < std::max(rank, 1), InvalidArgument, "axis must be -1 to {} for {} and {}, got {}",
           rank - 1, x.str(), y.str(), axis);
  if (x.rank() == y.rank()) return axis < 1 ? Laid{x, y} : laid_equal(x, y, axis);
  const int at = axis == -1 ? std::abs(x.rank() - y.rank()) : axis;
  return {laid_at(x, rank, at), laid_at(y, rank, at)};
}

Shape broadcast_shape(const Shape& x, const Shape& y, int axis) {
  const auto [a, b] = laid(x, y, axis);
  Shape out;
  for (int i = 0; i < a.rank(); ++i) {
    const int64_t extent = joint_extent(a[i], b[i]);
    AB_CHECK(extent >= kUnknown, ShapeMismatch, "X is {}, Y is {}, axis {}: extents must be equal or 1, got {} and {}",
             x.str(), y.str(), axis, a[i], b[i]);
    out.push_back(extent);
  }
  return out;
}

NdLoop<3> broadcast_loop(const Shape& out, const Shape& x, const Shape& y, int axis) {
  const auto [a, b] = laid(x, y, axis);
  AB_CHECK(a.rank() == out.rank(), ShapeMismatch,
           "X and Y must broadcast to the shape of the result, got {}, {} and {}", x.str(), y.str(), out.str());
  const auto so = dense_strides(out), sa = dense_strides(a), sb = dense_strides(b);
  NdLoop<3> loop;
  for (int i = 0; i < out.rank(); ++i) {
    AB_CHECK((a[i] == out[i] || a[i] == 1) && (b[i] == out[i] || b[i] == 1), ShapeMismatch,
             "X and Y must broadcast to the shape of the result, got {}, {} and {}", x.str(), y.str(), out.str());
    loop.add_axis(out[i], {so[i], a[i] == 1 ? 0 : sa[i], b[i] == 1 ? 0 : sb[i]});
  }
  return loop;
}

}  // namespace anabranch
