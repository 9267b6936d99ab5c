// Interprets the operands of a product as matrices.
#pragma once
#include "core/shape.h"
#include "ops/kernels/gemm.h"

namespace anabranch::math {

// One operand as a batch of matrices, after its transpose. batch_rank 0: one matrix, shared by the whole batch.
struct Matrices {
  int64_t rows, cols;
  Shape batch;
  bool transposed, vector;

  // A vector is a row of X or a column of Y, unless transposed.
  Matrices(const Shape& s, bool transpose, bool is_x) : transposed(transpose), vector(s.rank() == 1) {
    if (vector) {
      rows = is_x == transpose ? s[0] : 1;
      cols = is_x == transpose ? 1 : s[0];
      return;
    }
    const int r = s.rank();
    rows = s[transposed ? r - 1 : r - 2];
    cols = s[transposed ? r - 2 : r - 1];
    batch = s.slice(0, r - 2);
  }
  int64_t size() const { return rows * cols; }
};

struct Product {
  Matrices x, y;

  Product(const Shape& xs, const Shape& ys, bool transpose_x, bool transpose_y)
      : x(xs, transpose_x, true), y(ys, transpose_y, false) {
    AB_CHECK(x.cols == y.rows || x.cols == kUnknown || y.rows == kUnknown, ShapeMismatch,
             "inner dimensions differ: X is {}{}, Y is {}{}", xs.str(), transpose_x ? " transposed" : "", ys.str(),
             transpose_y ? " transposed" : "");
    AB_CHECK(x.batch.rank() == 0 || y.batch.rank() == 0 || compatible(x.batch, y.batch), ShapeMismatch,
             "batch dimensions differ: X is {}, Y is {}", xs.str(), ys.str());
  }
  const Shape& batch() const { return x.batch.rank() ? x.batch : y.batch; }
  Shape out() const {
    Shape s = batch();
    if (!x.vector || x.rows != 1) s.push_back(x.rows);  // the axis that a vector does not have disappears
    if (!y.vector || y.cols != 1) s.push_back(y.cols);
    return s.rank() ? s : scalar_shape();
  }
  // One matrix Y for a batch of X that is not transposed: treats all rows of X as one large matrix.
  bool folds() const { return x.batch.rank() && !y.batch.rank() && !x.transposed; }
  GemmDims dims() const {
    const int64_t n = batch().numel();
    if (folds()) return {.m = n * x.rows, .n = y.cols, .k = x.cols, .trans_b = y.transposed};
    return {.m = x.rows,
            .n = y.cols,
            .k = x.cols,
            .trans_a = x.transposed,
            .trans_b = y.transposed,
            .batch = n,
            .batch_stride_a = x.batch.rank() ? x.size() : 0,
            .batch_stride_b = y.batch.rank() ? y.size() : 0,
            .batch_stride_c = x.rows * y.cols};
  }
};

}  // namespace anabranch::math
