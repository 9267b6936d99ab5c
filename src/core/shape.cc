#include "core/shape.h"

#include <algorithm>

namespace anabranch {

Shape::Shape(std::span<const int64_t> dims) {
  AB_CHECK(dims.size() <= kMaxRank, InvalidArgument, "rank {} is above the limit of {}", dims.size(), kMaxRank);
  for (int64_t d : dims) push_back(d);
}

void Shape::push_back(int64_t extent) {
  AB_CHECK(rank_ < kMaxRank, InvalidArgument, "rank {} is above the limit of {}", rank_ + 1, kMaxRank);
  AB_CHECK(extent >= kUnknown, InvalidArgument, "extent {} of axis {} is negative", extent, rank_);
  dims_[rank_++] = extent;
}

bool Shape::known() const { return std::find(begin(), end(), kUnknown) == end(); }

int64_t Shape::numel() const { return numel(0, rank_); }

int64_t Shape::numel(int first, int last) const {
  int64_t n = 1;
  for (int i = first; i < last; ++i) {
    if (dims_[i] == kUnknown) return kUnknown;
  }
  // One zero extent makes the product zero for any other extents.
  for (int i = first; i < last; ++i) {
    if (dims_[i] == 0) return 0;
  }
  for (int i = first; i < last; ++i) {
    AB_CHECK(!__builtin_mul_overflow(n, dims_[i], &n) && n <= (int64_t{1} << 48), ResourceExhausted,
             "{} has too many elements", str());
  }
  return n;
}

Shape Shape::slice(int first, int last) const {
  Shape s;
  for (int i = first; i < last; ++i) s.push_back(dims_[i]);
  return s;
}

std::string Shape::str() const {
  std::string s = "[";
  for (int i = 0; i < rank_; ++i) s += (i ? ", " : "") + std::to_string(dims_[i]);
  return s + "]";
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && std::equal(begin(), end(), other.begin());
}

bool compatible(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i] != kUnknown && b[i] != kUnknown && a[i] != b[i]) return false;
  }
  return true;
}

int normal_axis(int64_t axis, int rank, const char* what) {
  AB_CHECK(axis >= -rank && axis < rank, InvalidArgument, "{} is {}, outside [{}, {})", what, axis, -rank, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace anabranch
