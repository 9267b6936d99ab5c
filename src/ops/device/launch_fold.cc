#include "ops/device/launch_fold.h"

namespace anabranch::device {

void launch_fold(const DeviceContext& c, ab_kernel kernel, const Tensor& x, const Shape& shape, const Shape& folded,
                 Tensor& y) {
  const auto steps = dense_strides(shape);
  NdLoop<1> kept, gone;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    (folded[axis] == 1 ? gone : kept).add_axis(shape[axis], {steps[axis]});
  }
  c.launch(kernel, FoldAxesArgs{operand(x), operand(y), axes_of(kept), axes_of(gone)});
}

void launch_fold(const DeviceContext& c, ab_kernel kernel, const Tensor& x, Tensor& y) {
  launch_fold(c, kernel, x, Shape{x.numel()}, Shape{1}, y);
}

void launch_fold_grad(const DeviceContext& c, ab_kernel kernel, const Tensor* x, const Tensor* out, const Tensor& dout,
                      const Shape& shape, const Shape& folded, Tensor& dx) {
  FoldAxesGradArgs a{};
  if (x) a.x = operand(*x);
  if (out) a.out = operand(*out);
  a.dout = operand(dout);
  a.dx = operand(dx);
  const auto from = dense_strides(shape), to = dense_strides(folded);
  NdLoop<2> loop;
  for (int axis = 0; axis < folded.rank(); ++axis) {
    loop.add_axis(shape[axis], {from[axis], folded[axis] == 1 ? 0 : to[axis]});
  }
  a.axes = axes_of(loop);
  a.p[0] = folded.numel() ? static_cast<double>(dx.numel() / folded.numel()) : 1.0;
  c.launch(kernel, a);
}

DTypeFactory fold_all(const char* fold) {
  return [=](DType dtype, const KernelArgs& op) -> Kernel {
    return [kernel = kernel_of(std::string("fold_axes/") + fold, dtype), x = op.in("X"),
            out = op.out("Out")](const DeviceContext& c) { launch_fold(c, kernel, c[x], c[out]); };
  };
}

DTypeFactory fold_all_grad(const char* fold, bool reads_x) {
  return [=](DType dtype, const KernelArgs& op) -> Kernel {
    const In x = reads_x ? op.in("X") : In();
    return [kernel = kernel_of(std::string("fold_axes_grad/") + fold, dtype), x, dout = op.in("Out@GRAD"),
            dx = op.out("X@GRAD")](const DeviceContext& c) {
      Shape ones = c[dx].shape();
      for (int axis = 0; axis < ones.rank(); ++axis) ones.set(axis, 1);
      launch_fold_grad(c, kernel, x ? &c[x] : nullptr, nullptr, c[dout], c[dx].shape(), ones, c[dx]);
    };
  };
}

LinesOf::LinesOf(const Shape& s, int64_t axis_attr) {
  const int axis = normal_axis(axis_attr, s.rank(), "axis");
  outer = s.numel(0, axis);
  width = s[axis];
  inner = s.numel(axis + 1, s.rank());
}

NormArgs norm_along(const Tensor& x, int64_t axis) {
  const LinesOf l(x.shape(), axis);
  NormArgs a{};
  a.x = operand(x);
  a.outer = l.outer, a.width = l.width, a.inner = l.inner;
  return a;
}

}  // namespace anabranch::device
