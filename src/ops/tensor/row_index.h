// Indexes rows by a tensor: shared by gather and scatter. An index out of range is an error.
#pragma once
#include <algorithm>
#include <array>

#include "ops/declare/declare.h"
#include "ops/declare/shape_args.h"
#include "ops/kernels/flat_loop.h"

namespace anabranch::tensor {

// [n] or [n, 1].
inline int64_t index_count(const InferContext& c, const char* slot) {
  check_ids_dtype(c, slot);
  const Shape& s = c.in(slot).shape;
  AB_CHECK(s.rank() == 1 || (s.rank() == 2 && (s[1] == 1 || s[1] == kUnknown)), ShapeMismatch,
           "{} must be [n] or [n, 1], got {}", slot, s.str());
  return s[0];
}

inline Shape with_rows(const Shape& s, int64_t rows) {
  AB_CHECK(s.rank() > 0, ShapeMismatch, "X must have at least one axis, got a scalar");
  Shape out = s;
  out.set(0, rows);
  return out;
}

// Reads element i of an index tensor, checked against the number of rows.
class Index {
 public:
  explicit Index(const Tensor& t) : wide_(t.dtype() == DType::kInt64), data_(t.raw()) {
    AB_CHECK(wide_ || t.dtype() == DType::kInt32, InvalidArgument, "indices must be int32 or int64, got {}",
             dtype_name(t.dtype()));
  }
  int64_t at(int64_t i, int64_t rows) const {
    const int64_t v = wide_ ? static_cast<const int64_t*>(data_)[i] : static_cast<const int32_t*>(data_)[i];
    AB_CHECK(v >= 0 && v < rows, InvalidArgument, "index at position {} must be 0 to {}, got {}", i, rows - 1, v);
    return v;
  }

 private:
  bool wide_;
  const void* data_;
};

inline int64_t grain_of(int64_t width) { return std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, width)); }

// Rows of X at the positions give(i), one after another.
template <class Position>
void pick(const KernelContext& c, const Tensor& x, int64_t n, int64_t width, Tensor* out, Position position) {
  const size_t bytes = static_cast<size_t>(width) * dtype_size(x.dtype());
  const auto* from = static_cast<const char*>(x.raw());
  auto* to = static_cast<char*>(out->mutable_raw());
  c.parallel_each(n, grain_of(width), [&](int64_t i) {
    copy_row(from + static_cast<size_t>(position(i)) * bytes, bytes, to + static_cast<size_t>(i) * bytes);
  });
}

// Adds row i of `from` to the row position(i). In order, in one thread: positions may repeat.
template <class T, class Position>
void put_back(const Tensor& from, int64_t n, int64_t width, Tensor* to, Position position) {
  const T* rows = from.data<T>();
  T* target = to->mutable_data<T>();
  for (int64_t i = 0; i < n; ++i) {
    T* row = target + position(i) * width;
    for (int64_t k = 0; k < width; ++k) row[k] += rows[i * width + k];
  }
}

// gather_nd: the last axis of Index holds a position in the first axes of X.
struct NdIndex {
  int64_t n, width;  // positions, elements at each
  int depth;
  std::array<int64_t, kMaxRank> extents{}, steps{};

  NdIndex(const Shape& x, const Shape& index) : depth(static_cast<int>(index[index.rank() - 1])) {
    n = index.numel(0, index.rank() - 1);
    width = x.numel(depth, x.rank());
    int64_t step = 1;
    for (int a = depth - 1; a >= 0; --a) {
      extents[a] = x[a];
      steps[a] = step;
      step *= x[a];
    }
  }
  int64_t position(const Index& index, int64_t i) const {
    int64_t at = 0;
    for (int a = 0; a < depth; ++a) at += index.at(i * depth + a, extents[a]) * steps[a];
    return at;
  }
};

// The shape that Index selects from the tensor in `slot`.
inline Shape gather_nd_shape(const InferContext& c, const char* slot = "X") {
  check_ids_dtype(c, "Index");
  const Shape &x = c.in(slot).shape, &index = c.in("Index").shape;
  AB_CHECK(index.rank() >= 1, ShapeMismatch, "Index must have at least one axis, got a scalar");
  const int64_t depth = index[index.rank() - 1];
  AB_CHECK(depth >= 0 && depth <= x.rank(), ShapeMismatch, "the last extent of Index {} must be at most {} for {} {}",
           index.str(), x.rank(), slot, x.str());
  Shape out = index.slice(0, index.rank() - 1);
  for (int i = static_cast<int>(depth); i < x.rank(); ++i) out.push_back(x[i]);
  return out.rank() ? out : scalar_shape();
}

}  // namespace anabranch::tensor
