// How ops on pairs of rows declare their device kernels; see also launch.h.
#pragma once
#include "ops/device/args_rows.h"
#include "ops/device/launch.h"

namespace anabranch::device {

// The rows of x with those of y, or with the only row of y.
inline PairArgs pair_of(const Tensor& x, const Tensor& y, int64_t rows, int64_t width) {
  PairArgs a{};
  a.x = operand(x);
  a.y = operand(y);
  a.rows = rows;
  a.width = width;
  return a;
}

// The same for tensors whose first axis counts the rows.
inline PairArgs pair_of_rows(const Tensor& x, const Tensor& y) {
  PairArgs a = pair_of(x, y, x.rows(), x.row_elems());
  a.flags = y.rows() == x.rows() ? 0 : 1;
  return a;
}

}  // namespace anabranch::device
