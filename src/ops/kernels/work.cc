#include "ops/kernels/work.h"

#include <algorithm>
#include <cmath>

namespace anabranch {

// The product of the three sizes is (M K N)^2 B^3, or B^2 when one side has no B.
double product_flops(const WorkContext& c) {
  const Tensor *x = c.in("X"), *y = c.in("Y"), *out = c.out("Out");
  if (!x || !y || !out) return 0;
  double batch = 1;
  if (x->shape().rank() > 2 && y->shape().rank() > 2) {
    for (int i = 0; i + 2 < std::min(x->shape().rank(), y->shape().rank()); ++i) {
      batch *= static_cast<double>(std::min(x->shape()[i], y->shape()[i]));
    }
  }
  return c.times({"X", "Y"}) * 2 * std::sqrt(elems_of(x) * elems_of(y) * elems_of(out) / std::max(batch, 1.0));
}

double convolution_flops(const WorkContext& c, const Tensor* at) {
  const Tensor* filter = c.in("Filter");
  if (!filter || !at || filter->rows() == 0) return 0;
  return c.times({"Input", "Filter"}) * 2 * elems_of(at) * elems_of(filter) / static_cast<double>(filter->rows());
}

double recurrent_flops(const WorkContext& c) {
  const Tensor* weight = c.in("Weight");
  if (!weight) return 0;
  return (c.gradient() ? 2 : 1) * 2 * elems_of(c.in("Input")) * static_cast<double>(weight->rows());
}

}  // namespace anabranch
