// The operands of mul, flattened to matrices.
#pragma once
#include "base/counted.h"
#include "opdef/op_def.h"
#include "ops/kernels/gemm.h"

namespace anabranch::math {

inline void flat_attrs(OpDef& def) {
  def.attr<int32_t>("x_num_col_dims", 1, "number of leading axes of X that form the rows of its matrix");
  def.attr<int32_t>("y_num_col_dims", 1, "number of leading axes of Y that form the rows of its matrix");
}

// X as [m, k], Y as [k, n].
struct Flat {
  int x_cols, y_cols;  // first axis of the columns
  explicit Flat(const ir::Op& op)
      : x_cols(op.attr<int32_t>("x_num_col_dims")), y_cols(op.attr<int32_t>("y_num_col_dims")) {}

  void check(const Shape& x, const Shape& y) const {
    AB_CHECK(x_cols >= 1 && x_cols < x.rank(), InvalidArgument, "x_num_col_dims must be from 1 to {} for X {}, got {}",
             x.rank() - 1, x.str(), x_cols);
    AB_CHECK(y_cols >= 1 && y_cols < y.rank(), InvalidArgument, "y_num_col_dims must be from 1 to {} for Y {}, got {}",
             y.rank() - 1, y.str(), y_cols);
    const int64_t width = x.numel(x_cols, x.rank()), height = y.numel(0, y_cols);
    AB_CHECK(width == height || width == kUnknown || height == kUnknown, ShapeMismatch,
             "inner dimensions differ: X is {} with {}, Y is {} with {}", x.str(), counted(width, "column"), y.str(),
             counted(height, "row"));
  }
  Shape out(const Shape& x, const Shape& y) const {
    Shape s = x.slice(0, x_cols);
    for (int i = y_cols; i < y.rank(); ++i) s.push_back(y[i]);
    return s;
  }
  GemmDims dims(const Shape& x, const Shape& y) const {
    return {.m = x.numel(0, x_cols), .n = y.numel(y_cols, y.rank()), .k = x.numel(x_cols, x.rank())};
  }
};

}  // namespace anabranch::math
