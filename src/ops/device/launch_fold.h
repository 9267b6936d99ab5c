// How ops that fold axes or lines declare their device kernels; see also launch.h.
#pragma once
#include "ops/device/args_fold.h"
#include "ops/device/launch.h"

namespace anabranch::device {

// y = the fold of x over the axes on which `folded`, a shape of the same rank, has extent 1.
void launch_fold(const DeviceContext& c, ab_kernel kernel, const Tensor& x, const Shape& shape, const Shape& folded,
                 Tensor& y);
// y = the fold of all elements of x.
void launch_fold(const DeviceContext& c, ab_kernel kernel, const Tensor& x, Tensor& y);
// dx, of this shape, of a fold to `folded`. x and out: null if the term does not read them.
void launch_fold_grad(const DeviceContext& c, ab_kernel kernel, const Tensor* x, const Tensor* out, const Tensor& dout,
                      const Shape& shape, const Shape& folded, Tensor& dx);

// Out = the fold of all elements of X, a scalar.
DTypeFactory fold_all(const char* fold);
// Its gradient X@GRAD, of a term that reads X if the gradient op does.
DTypeFactory fold_all_grad(const char* fold, bool reads_x);

// A tensor as lines along an axis, in the form that kernels take.
struct LinesOf {
  int64_t outer, width, inner;
  LinesOf(const Shape& s, int64_t axis_attr);
};

NormArgs norm_along(const Tensor& x, int64_t axis);  // x along an axis

}  // namespace anabranch::device
